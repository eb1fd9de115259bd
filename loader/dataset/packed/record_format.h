// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/dataset_writer.h>
#include <millrace/error.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// What a dataset file holds. It is one LMDB file with two named databases; all numbers are
// little-endian.
//
// "records" (MDB_INTEGERKEY), from the record's index (uint64, 0 up without gaps) to
//
//     offset      bytes
//     0           8      XXH3-64 of all that follows
//     8           4      n, the number of fields
//     12          4 n    length of each field
//     12 + 4 n    ...    the fields' bytes, one behind the other, to the end of the value
//
// "meta", with the one key "description", to JSON in UTF-8
//
//     format       1
//     complete     false until the writer has finished
//     records      how many are committed
//     fields       names of the fields, in the order of the records' lengths
//     classes      names of the classes that "label" counts
//     fingerprint  of the records' checksums in order (see `fingerprint_with`; format 1 had
//                  another), as 16 hexadecimal digits
//     created_by   "millrace VERSION"
//     checksum     XXH3-64 of this JSON without the checksum, with sorted keys and no spaces, as 16
//                  hexadecimal digits; files may lack it
//     source       what the records were made of, in the words of the writer's user; resuming
//                  compares it
//     bytes        length of all the records' values
//     items        of the source, with a record or without one
//     field_specs  what is known of the fields' values: [name, dtype, shape, whether the outermost
//                  extent varies] each; files may lack it
//     left_out     the items without a record: [number, reason] each

namespace millrace {

inline constexpr std::uint64_t dataset_format = 2;
inline constexpr const char* records_database = "records";
inline constexpr const char* meta_database = "meta";
inline constexpr std::string_view description_key = "description";
/// What LMDB can keep as one value.
inline constexpr std::size_t max_record_bytes = UINT32_MAX;

/// What a dataset says of itself.
struct Description {
  std::uint64_t format = dataset_format;
  bool complete = false;
  std::uint64_t records = 0;
  std::vector<std::string> fields;
  std::vector<std::string> classes;
  std::uint64_t fingerprint = 0;
  std::string created_by;
  std::string source;
  std::uint64_t bytes = 0;
  std::uint64_t items = 0;
  std::vector<LeftOutItem> left_out;
  std::vector<FieldSpec> field_specs;
};

/// Who began a dataset, from what.
struct Origin {
  std::string created_by;
  std::string source;
};
std::string this_version();
/// Throws `Error` (`invalid_argument`) if what was begun at `path` would not be continued by `now`.
void check_same_pack(const std::filesystem::path& path, const Origin& begun, const Origin& now);

std::string to_json(const Description& description);
/// Throws `Error` (`corrupt`, naming `file`) for what is no description, or one of a newer format.
Description parse_description(std::string_view json, const std::string& file);

/// Bytes of the value that `encode_record` makes.
std::size_t encoded_size(std::span<const RecordField> fields);
/// Appends the value that holds these fields to `out` and returns its checksum.
std::uint64_t encode_record(std::span<const RecordField> fields, std::vector<std::byte>& out);

/// Reads a stored value, trusting nothing in it. On success `fields` has the names `names` and
/// points into `value`.
Status parse_record(std::span<const std::byte> value, std::span<const std::string> names,
                    std::vector<RecordField>& fields);
/// The checksum that a stored value holds; nullopt if it is too short to hold one.
std::optional<std::uint64_t> stored_checksum(std::span<const std::byte> value);
/// Whether the value's bytes are those its checksum was made of.
Status check_checksum(std::span<const std::byte> value);

}  // namespace millrace
