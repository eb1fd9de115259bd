// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/array/array_field.h"

// The description of arrays that are read side by side: JSON in UTF-8. loader/README.md has
// examples. Names of files are relative to the description.
//
//     format           "arrays".
//     fields           The fields by their names, each an object as below.
//     classes          Names of the classes, indexed by the field "label". Optional.
//     raw, header_bytes, record_bytes
//                      The files and layout of the fields that name no file themselves.
//
// A field has one of
//
//     npy              A .npy file, or several consecutive ones. Record n is the element n of their
//                      first axis.
//     raw              A file, or several, of records of fixed length. header_bytes (default 0)
//                      precede the records, which have record_bytes each (default: those of one
//                      value). A record has a little-endian value of dtype and shape (default: a
//                      single number) at offset (default 0).
//
// and may have
//
//     window           {length, stride}: a record is length single values, and a record begins
//                      every stride values (default: length).
//     offsets          A .npy file of integers: record n has the values from offsets[n] up to, not
//                      including, offsets[n + 1].
//     max_length       The largest number of values of a record with offsets. Some transforms need
//                      it.
//     image            "chw", "hwc" or "grey": the value is the pixels of an image. Records have
//                      it as a PPM or PGM file, which image transforms read.
//     as               "int64": integers of another type are widened. Labels must be int64.

namespace millrace {

/// The parsed description.
struct ArrayDescription {
  std::vector<ArrayField> fields{};
  std::vector<std::string> classes{};
  /// Each file once, in the order in which the description names them.
  std::vector<std::string> files{};
  /// Reasons why files are not mapped although mapping was requested.
  std::vector<std::string> warnings{};
};

/// Returns whether a text is meant as a description, even a damaged one, and not as a list of
/// shards.
bool is_array_description(std::string_view text);

/// Parses `text`, the description in the file `path`, and opens the files that it names. Throws
/// `Error`, naming the file and the key: `corrupt`, `not_found` and `io`.
ArrayDescription read_array_description(const std::string& text, const std::filesystem::path& path,
                                        bool mapped);

}  // namespace millrace
