// SPDX-License-Identifier: Apache-2.0
#include "dataset/packed/record_format.h"

#include <millrace/detail/json_text.h>
#include <xxhash.h>

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/json_members.h"
#include "dataset/fingerprint.h"

namespace millrace {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers are copied as they lie in memory");

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

std::string text_of(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string checksum_of_description(const nlohmann::json& without_checksum) {
  const std::string text = text_of(without_checksum);
  return hex16(XXH3_64bits(text.data(), text.size()));
}

nlohmann::json to_json(const FieldSpec& spec) {
  nlohmann::json extents = nlohmann::json::array();
  for (const std::size_t extent : spec.shape.extents()) extents.push_back(extent);
  return {spec.name, to_string(spec.dtype), extents, spec.variable};
}

FieldSpec spec_of(const nlohmann::json& json) {
  const auto refuse = [&] {
    throw Error(ErrorCode::corrupt,
                "its \"field_specs\" has " + cut(json.dump()) +
                    ", must have [name, dtype, shape, whether the outermost extent varies]");
  };
  const nlohmann::json& extents = json.at(2);
  const std::optional<DType> dtype = dtype_of(json.at(1).get<std::string>());
  if (!dtype || !extents.is_array() || extents.size() > Shape::max_rank) refuse();
  FieldSpec spec{json.at(0), *dtype, Shape(), json.at(3)};
  for (std::size_t axis = extents.size(); axis-- > 0;)
    spec.shape = spec.shape.with_outer(count_of(extents[axis], "field_specs"));
  if (spec.variable && extents.empty()) refuse();
  return spec;
}

}  // namespace

std::string this_version() { return std::string("millrace ") + MILLRACE_VERSION; }

void check_same_pack(const std::filesystem::path& path, const Origin& begun, const Origin& now) {
  const auto refuse = [&](const std::string& was, const std::string& is) {
    throw Error(ErrorCode::invalid_argument,
                path.string() + " cannot be resumed: it was begun " + was + ", and this is " + is +
                    "; give what it was begun with, or write it again");
  };
  if (begun.created_by != now.created_by) refuse("by " + cut(begun.created_by), now.created_by);
  if (begun.source != now.source)
    refuse("from \"" + cut(begun.source) + "\"", "\"" + cut(now.source) + "\"");
}

std::string to_json(const Description& description) {
  nlohmann::json left_out = nlohmann::json::array();
  for (const LeftOutItem& item : description.left_out) left_out.push_back({item.item, item.reason});
  nlohmann::json specs = nlohmann::json::array();
  for (const FieldSpec& spec : description.field_specs) specs.push_back(to_json(spec));
  nlohmann::json json = {{"format", dataset_format},
                         {"complete", description.complete},
                         {"records", description.records},
                         {"fields", description.fields},
                         {"classes", names_to_json(description.classes)},
                         {"fingerprint", hex16(description.fingerprint)},
                         {"created_by", description.created_by},
                         {"source", description.source},
                         {"bytes", description.bytes},
                         {"items", description.items},
                         {"left_out", left_out},
                         {"field_specs", specs}};
  // The checksum covers the written text, in which invalid UTF-8 is replaced.
  json = nlohmann::json::parse(text_of(json));
  json["checksum"] = checksum_of_description(json);
  return text_of(json);
}

Description parse_description(std::string_view json, const std::string& file) {
  try {
    // The text may have any length, since the list of items that were left out may be long.
    if (const std::string problem = json_problem(json, SIZE_MAX); !problem.empty())
      throw Error(ErrorCode::corrupt,
                  "its damaged description " + problem + "; copy or pack it again");
    nlohmann::json parsed = nlohmann::json::parse(json);
    const auto format = count_of(parsed.at("format"), "format");
    if (format > dataset_format)
      throw Error(ErrorCode::corrupt, "it has dataset format " + std::to_string(format) +
                                          "; this millrace knows formats up to " +
                                          std::to_string(dataset_format) +
                                          ": use a newer millrace");
    if (const auto stored = parsed.find("checksum"); stored != parsed.end()) {
      const auto checksum = stored->get<std::string>();
      parsed.erase(stored);
      if (checksum != checksum_of_description(parsed))
        throw Error(
            ErrorCode::corrupt,
            "its description does not match its checksum: it is damaged; copy or pack it again");
    }
    Description found;
    found.format = format;
    parsed.at("complete").get_to(found.complete);
    found.records = count_of(parsed.at("records"), "records");
    parsed.at("fields").get_to(found.fields);
    found.classes = names_from_json(parsed.at("classes"));
    found.fingerprint = parse_hex16(parsed.at("fingerprint"));
    parsed.at("created_by").get_to(found.created_by);
    found.source = parsed.value("source", std::string());
    found.bytes = count_of(parsed.value("bytes", nlohmann::json(0U)), "bytes");
    found.items = count_of(parsed.value("items", nlohmann::json(found.records)), "items");
    for (const nlohmann::json& item : parsed.value("left_out", nlohmann::json::array()))
      found.left_out.push_back({count_of(item.at(0), "left_out"), item.at(1)});
    for (const nlohmann::json& spec : parsed.value("field_specs", nlohmann::json::array()))
      found.field_specs.push_back(spec_of(spec));
    return found;
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::corrupt,
                file + " has a damaged description, so it cannot be read; pack it again (" +
                    cut(json_reason(error)) + ")");
  } catch (const Error& error) {
    throw error.with_context(file + " cannot be read: ");
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
    if (!field.bytes.empty())
      std::memcpy(value.data() + bytes_at, field.bytes.data(), field.bytes.size());
    length_at += sizeof(std::uint32_t);
    bytes_at += field.bytes.size();
  }
  const std::uint64_t checksum = checksum_of(value);
  store(checksum, value.data());
  return checksum;
}

Status parse_record(std::span<const std::byte> value, std::span<const std::string> names,
                    std::vector<RecordField>& fields) {
  fields.clear();
  if (value.size() < lengths_at)
    return Status::bad("it is only " + std::to_string(value.size()) + " bytes long");
  const auto count = load<std::uint32_t>(value, checksum_bytes);
  if (count != names.size())
    return Status::bad("it has " + std::to_string(count) + " fields; the dataset's records have " +
                       std::to_string(names.size()));
  std::size_t bytes_at = lengths_at + sizeof(std::uint32_t) * names.size();
  if (value.size() < bytes_at) return Status::bad("it ends within its header");
  for (std::size_t field = 0; field < names.size(); ++field) {
    const auto length = load<std::uint32_t>(value, lengths_at + sizeof(std::uint32_t) * field);
    if (length > value.size() - bytes_at)
      return Status::bad("its field \"" + names[field] + "\" reaches beyond its end");
    fields.push_back({names[field], value.subspan(bytes_at, length)});
    bytes_at += length;
  }
  if (bytes_at != value.size())
    return Status::bad("it has " + std::to_string(value.size() - bytes_at) +
                       " bytes behind its last field");
  return Status::ok();
}

std::optional<std::uint64_t> stored_checksum(std::span<const std::byte> value) {
  if (value.size() < checksum_bytes) return {};
  return load<std::uint64_t>(value, 0);
}

Status check_checksum(std::span<const std::byte> value) {
  const std::optional<std::uint64_t> stored = stored_checksum(value);
  if (!stored) return Status::bad("it is only " + std::to_string(value.size()) + " bytes long");
  if (*stored != checksum_of(value))
    return Status::bad("its bytes do not match its checksum: the file is damaged");
  return Status::ok();
}

}  // namespace millrace
