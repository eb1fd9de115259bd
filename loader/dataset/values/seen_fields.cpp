// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/seen_fields.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>

#include "dataset/values/value.h"

namespace millrace {
namespace {

constexpr std::uint64_t max_remembered = 8;
constexpr std::size_t label_bytes = sizeof(std::int64_t);
constexpr std::size_t min_extent = 4096;

bool holds_text(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto is_control = [](unsigned char letter) {
    return (letter < ' ' && letter != '\t' && letter != '\n' && letter != '\r') || letter == 127;
  };
  return std::ranges::none_of(text, is_control) && is_utf8(text);
}

/// Statistics of a field over the records that were read.
struct SeenField {
  std::string name;
  std::size_t shortest = SIZE_MAX;
  std::size_t longest = 0;
  unsigned records = 0;
  unsigned integers = 0;
  unsigned texts = 0;

  void add(std::span<const std::byte> bytes) {
    shortest = std::min(shortest, bytes.size());
    longest = std::max(longest, bytes.size());
    ++records;
    if (holds_text(bytes)) ++texts;
    if (holds_integer(bytes)) ++integers;
  }

  FieldSpec spec() const {
    if (2 * integers > records) return {name, DType::int64, {}};
    if (shortest == longest && longest > 0 && texts < records)
      return {name, DType::uint8, {longest}};
    return {name, DType::uint8, {std::bit_ceil(std::max(min_extent, 2 * longest))}, true};
  }
};

void add_record(const Record& record, std::vector<SeenField>& seen) {
  for (const RecordField& field : record.fields()) {
    auto found = std::ranges::find(seen, field.name, &SeenField::name);
    if (found == seen.end()) found = seen.insert(found, {.name = std::string(field.name)});
    found->add(field.bytes);
  }
}

}  // namespace

bool holds_integer(std::span<const std::byte> bytes) {
  return bytes.size() == label_bytes && !holds_text(bytes);
}

std::vector<FieldSpec> seen_field_specs(const Dataset& dataset) {
  std::vector<FieldSpec> specs = dataset.field_specs();
  std::vector<SeenField> seen;
  const std::uint64_t records = std::min(dataset.size(), max_remembered);
  const auto reader = records > 0 ? dataset.make_reader() : nullptr;
  if (reader == nullptr) return specs;
  for (std::uint64_t number = 0; number < records; ++number) {
    try {
      add_record(reader->read(dataset.size() / records * number), seen);
    } catch (const Error&) {
      continue;  // a run that needs this record reports the error
    }
  }
  for (const SeenField& field : seen)
    if (std::ranges::find(specs, field.name, &FieldSpec::name) == specs.end())
      specs.push_back(field.spec());
  return specs;
}

}  // namespace millrace
