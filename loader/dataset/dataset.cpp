// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset.h>
#include <millrace/detail/json_text.h>
#include <millrace/error.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace millrace {
namespace {

const RecordField* find(std::span<const RecordField> fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &RecordField::name);
  return found == fields.end() ? nullptr : &*found;
}

}  // namespace

std::span<const std::byte> Record::operator[](std::string_view name) const {
  if (const RecordField* field = find(fields_, name)) return field->bytes;
  std::string there;
  for (const RecordField& field : fields_)
    there += (there.empty() ? "" : ", ") + std::string(field.name);
  throw Error(ErrorCode::not_found,
              "record " + std::to_string(index_) + " has no field \"" + std::string(name) +
                  "\"; its fields are: " + cut(there),
              "", index_);
}

bool Record::has(std::string_view name) const { return find(fields_, name) != nullptr; }

std::int64_t Record::integer(std::string_view name) const {
  static_assert(std::endian::native == std::endian::little);
  const std::span<const std::byte> bytes = (*this)[name];
  std::int64_t value;
  if (bytes.size() != sizeof value)
    throw Error(ErrorCode::corrupt,
                "field \"" + std::string(name) + "\" of record " + std::to_string(index_) +
                    " has " + std::to_string(bytes.size()) + " bytes; an integer has 8",
                "", index_);
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::string_view Record::text(std::string_view name) const {
  const std::span<const std::byte> bytes = (*this)[name];
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Status DatasetReader::intact() const { return Status::ok(); }

void Dataset::prefetch(std::span<const std::uint64_t>) const {}

std::string Dataset::key(std::uint64_t index) const { return "record " + std::to_string(index); }

std::vector<std::string> Dataset::classes() const { return {}; }

std::vector<FieldSpec> Dataset::field_specs() const { return {}; }

DatasetFacts Dataset::facts() const { return {}; }

std::optional<StoredRecord> Dataset::stored_record(std::uint64_t) const { return {}; }

std::vector<std::shared_ptr<const Dataset>> Dataset::parts() const { return {}; }

bool Dataset::has_stored_hints() const { return false; }

void Dataset::stored_hint(std::uint64_t, std::vector<std::byte>& hint) const { hint.clear(); }

}  // namespace millrace
