// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/array/array_field.h"

// The description of arrays that are read side by side, JSON in UTF-8. loader/README.md has whole
// ones.
//
//     format           "arrays"
//     fields           the fields by their names, each an object as below
//     classes          names of the classes that the field "label" counts; may be missing
//     raw, header_bytes, record_bytes
//                      where the fields are that name no file themselves
//
// A field has one of
//
//     npy              a .npy file, or several one after the other: record n is what their first
//                      axis has at n. Names of files are relative to the description
//     raw              a file, or several, of records of fixed length behind header_bytes (0 if
//                      missing) bytes: each has record_bytes (as many as the value needs, if
//                      missing), and in it, offset (0) bytes from its begin, a little-endian value
//                      of dtype and shape (a single one, if missing)
//
// and may have
//
//     window           {length, stride}: single values are records of length of them, which begin
//                      every stride (length, if missing)
//     offsets          a .npy file of integers: record n has the values from offsets[n] up to
//                      offsets[n + 1]
//     max_length       how many these are at most; a transform may need it
//     image            "chw", "hwc" or "grey": the value is the pixels of an image, which records
//                      have as a PPM or PGM file, as image transforms take it
//     as               "int64": integers of another type are widened, as labels must be

namespace millrace {

/// What a description says.
struct ArrayDescription {
  std::vector<ArrayField> fields{};
  std::vector<std::string> classes{};
  /// Each once, in the order in which they are named.
  std::vector<std::string> files{};
  /// Why files are not mapped as they should be.
  std::vector<std::string> warnings{};
};

/// Whether a text is meant as a description, however damaged it may be, and no list of shards.
bool is_array_description(std::string_view text);

/// Reads the description `text` of the file `path` and opens what it names. Throws `Error`, naming
/// the file and the key: `corrupt`, `not_found` and `io`.
ArrayDescription read_array_description(const std::string& text, const std::filesystem::path& path,
                                        bool mapped);

}  // namespace millrace
