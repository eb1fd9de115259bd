// SPDX-License-Identifier: Apache-2.0
#include "record_format.h"

#include <xxhash.h>

#include <bit>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

namespace millrace {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie in memory");

constexpr std::size_t checksum_bytes = 8;
constexpr std::size_t lengths_at = 12;

template <typename T>
T load(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <typename T>
void store(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof value);
}

std::uint64_t checksum_of(std::span<const std::byte> value) {
  return XXH3_64bits(value.data() + checksum_bytes, value.size() - checksum_bytes);
}

std::string hex16(std::uint64_t number) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  return digits;
}

std::uint64_t parse_hex16(const std::string& digits) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  if (error != std::errc() || end != digits.data() + digits.size()) throw Error(ErrorCode::corrupt, "bad fingerprint " + digits);
  return number;
}

}  // namespace

std::string to_json(const Description& description) {
  const nlohmann::json json = {{"format", dataset_format},
                               {"complete", description.complete},
                               {"records", description.records},
                               {"fields", description.fields},
                               {"classes", description.classes},
                               {"fingerprint", hex16(description.fingerprint)},
                               {"created_by", description.created_by}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Description parse_description(std::string_view json, const std::string& file) {
  try {
    const nlohmann::json parsed = nlohmann::json::parse(json);
    const auto format = parsed.at("format").get<std::uint64_t>();
    if (format > dataset_format)
      throw Error(ErrorCode::corrupt, "it has dataset format " + std::to_string(format) + "; this millrace knows formats up to " +
                                          std::to_string(dataset_format) + ": use a newer millrace");
    return {.complete = parsed.at("complete").get<bool>(),
            .records = parsed.at("records").get<std::uint64_t>(),
            .fields = parsed.at("fields").get<std::vector<std::string>>(),
            .classes = parsed.at("classes").get<std::vector<std::string>>(),
            .fingerprint = parse_hex16(parsed.at("fingerprint").get<std::string>()),
            .created_by = parsed.at("created_by").get<std::string>()};
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::corrupt,
                file + " has a damaged description, so it cannot be read; pack it again (" + error.what() + ")");
  } catch (const Error& error) {
    throw Error(ErrorCode::corrupt, file + " cannot be read: " + error.what());
  }
}

std::size_t encoded_size(std::span<const RecordField> fields) {
  std::size_t size = lengths_at + sizeof(std::uint32_t) * fields.size();
  for (const RecordField& field : fields) size += field.bytes.size();
  return size;
}

std::uint64_t encode_record(std::span<const RecordField> fields, std::vector<std::byte>& out) {
  const std::size_t begin = out.size();
  out.resize(begin + encoded_size(fields));
  const std::span value(out.data() + begin, out.size() - begin);
  store(static_cast<std::uint32_t>(fields.size()), value.data() + checksum_bytes);
  std::size_t length_at = lengths_at;
  std::size_t bytes_at = lengths_at + sizeof(std::uint32_t) * fields.size();
  for (const RecordField& field : fields) {
    store(static_cast<std::uint32_t>(field.bytes.size()), value.data() + length_at);
    if (!field.bytes.empty()) std::memcpy(value.data() + bytes_at, field.bytes.data(), field.bytes.size());
    length_at += sizeof(std::uint32_t);
    bytes_at += field.bytes.size();
  }
  const std::uint64_t checksum = checksum_of(value);
  store(checksum, value.data());
  return checksum;
}

Status parse_record(std::span<const std::byte> value, std::span<const std::string> names, std::vector<RecordField>& fields) {
  fields.clear();
  if (value.size() < lengths_at) return Status::bad("it is only " + std::to_string(value.size()) + " bytes long");
  const auto count = load<std::uint32_t>(value, checksum_bytes);
  if (count != names.size())
    return Status::bad("it has " + std::to_string(count) + " fields; the dataset's records have " + std::to_string(names.size()));
  std::size_t bytes_at = lengths_at + sizeof(std::uint32_t) * names.size();
  if (value.size() < bytes_at) return Status::bad("it ends within its header");
  for (std::size_t field = 0; field < names.size(); ++field) {
    const auto length = load<std::uint32_t>(value, lengths_at + sizeof(std::uint32_t) * field);
    if (length > value.size() - bytes_at) return Status::bad("its field \"" + names[field] + "\" reaches beyond its end");
    fields.push_back({names[field], value.subspan(bytes_at, length)});
    bytes_at += length;
  }
  if (bytes_at != value.size())
    return Status::bad("it has " + std::to_string(value.size() - bytes_at) + " bytes behind its last field");
  return Status::ok();
}

Status check_checksum(std::span<const std::byte> value) {
  if (value.size() < checksum_bytes) return Status::bad("it is only " + std::to_string(value.size()) + " bytes long");
  if (load<std::uint64_t>(value, 0) != checksum_of(value))
    return Status::bad("its bytes do not match its checksum: the file is damaged");
  return Status::ok();
}

}  // namespace millrace
