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

// The format of a dataset file: one LMDB file with two named databases. All numbers are
// little-endian.
//
// "records" (MDB_INTEGERKEY) has the records. The key is the index (uint64, from 0 without gaps),
// the value is
//
//     offset      bytes
//     0           8      The XXH3-64 of the bytes that follow.
//     8           4      n, the number of fields.
//     12          4 n    The length of each field.
//     12 + 4 n    ...    The contents of the fields in order, to the end of the value.
//
// "meta" has the single key "description", whose value is JSON in UTF-8:
//
//     format       2. Format 1 had another fingerprint.
//     complete     False until the writer has finished.
//     records      Number of committed records.
//     fields       Names of the fields, in the order of the records' lengths.
//     classes      Names of the classes, indexed by the field "label".
//     fingerprint  Fingerprint of the records' checksums in order (see `fingerprint_with`), as 16
//                  hexadecimal digits.
//     created_by   "millrace VERSION".
//     checksum     The XXH3-64 of this JSON without the checksum, with sorted keys and without
//                  spaces, as 16 hexadecimal digits. May be missing.
//     source       Origin of the records, stated by the writer's user. Resuming compares it.
//     bytes        Total length of the records' values.
//     items        Number of items of the source, with a record or without one.
//     field_specs  The known specs of fields: [name, dtype, shape, whether the outermost extent
//                  varies] each. May be missing.
//     left_out     The items without a record: [number, reason] each.

namespace millrace {

inline constexpr std::uint64_t dataset_format = 2;
inline constexpr const char* records_database = "records";
inline constexpr const char* meta_database = "meta";
inline constexpr std::string_view description_key = "description";
/// The longest value that LMDB supports.
inline constexpr std::size_t max_record_bytes = UINT32_MAX;

/// The stored description of a dataset.
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

/// Version and source that a dataset was begun with.
struct Origin {
  std::string created_by;
  std::string source;
};
std::string this_version();
/// Throws `Error` (`invalid_argument`) unless the dataset begun at `path` can be continued: version
/// and source must be equal.
void check_same_pack(const std::filesystem::path& path, const Origin& begun, const Origin& now);

std::string to_json(const Description& description);
/// Parses a description. Throws `Error` (`corrupt`, naming `file`) if it is invalid or of a newer
/// format.
Description parse_description(std::string_view json, const std::string& file);

/// Returns the length of the value that `encode_record` appends.
std::size_t encoded_size(std::span<const RecordField> fields);
/// Appends the value of a record with these fields to `out`. Returns its checksum.
std::uint64_t encode_record(std::span<const RecordField> fields, std::vector<std::byte>& out);

/// Parses a stored value, which is not trusted. On success `fields` has the names `names` and
/// points into `value`.
Status parse_record(std::span<const std::byte> value, std::span<const std::string> names,
                    std::vector<RecordField>& fields);
/// Returns the checksum stored in a value; nullopt if the value is too short.
std::optional<std::uint64_t> stored_checksum(std::span<const std::byte> value);
/// Returns whether the bytes of a value match its stored checksum.
Status check_checksum(std::span<const std::byte> value);

}  // namespace millrace
