// SPDX-License-Identifier: Apache-2.0
#include "dataset/lmdb/label_values.h"

#include <millrace/detail/json_text.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "dataset/lmdb/keys.h"

namespace millrace {
namespace {

std::optional<std::int64_t> decimal(std::string_view text) {
  if (text.ends_with('\0') || text.ends_with('\n')) text.remove_suffix(1);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

/// Returns an integer of 1, 4 or 8 bytes. One byte is unsigned, the others are signed.
std::int64_t signed_number(std::string_view bytes, bool is_little_endian) {
  const std::uint64_t number = number_of(bytes, is_little_endian);
  return bytes.size() == sizeof(std::int32_t)
             ? std::int64_t{static_cast<std::int32_t>(static_cast<std::uint32_t>(number))}
             : static_cast<std::int64_t>(number);
}

std::uint64_t magnitude(std::int64_t number) {
  return number < 0 ? -static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
}

/// Guesses the byte order of integer labels. Each label votes for the order that makes its
/// magnitude smaller, so a negative label or a single large label cannot decide alone. In a tie,
/// the order is little-endian.
bool are_little_endian_labels(std::span<const std::string> labels) {
  std::size_t little = 0, big = 0;
  for (const std::string& label : labels) {
    const std::uint64_t as_little = magnitude(signed_number(label, true));
    const std::uint64_t as_big = magnitude(signed_number(label, false));
    little += as_little < as_big ? 1 : 0;
    big += as_big < as_little ? 1 : 0;
  }
  return little >= big;
}

}  // namespace

LabelValues::LabelValues(std::span<const std::string> some) {
  const auto is_byte = [](const std::string& one) { return one.size() == 1; };
  if (some.empty()) return;
  if (std::ranges::all_of(some, [](const std::string& one) { return decimal(one).has_value(); }))
    kind_ = Kind::decimal;
  else if (are_numbers(some))
    kind_ = are_little_endian_labels(some) ? Kind::little_endian : Kind::big_endian;
  else if (std::ranges::all_of(some, is_byte))
    kind_ = Kind::little_endian;
}

Status LabelValues::read(std::span<const std::byte> value, std::int64_t& number,
                         RecordField& field) const {
  field = {"label", value};
  if (kind_ == Kind::text) return Status::ok();
  const std::string_view bytes(reinterpret_cast<const char*>(value.data()), value.size());
  if (kind_ == Kind::decimal) {
    const std::optional<std::int64_t> found = decimal(bytes);
    if (!found)
      return Status::bad("its label is \"" + cut(std::string(bytes)) +
                         "\", and those of others are integers");
    number = *found;
  } else if (bytes.size() == 1 || bytes.size() == 4 || bytes.size() == 8) {
    number = signed_number(bytes, kind_ == Kind::little_endian);
  } else {
    return Status::bad("its label has " + std::to_string(bytes.size()) +
                       " bytes, and those of others are integers of 1, 4 or 8");
  }
  field.bytes = std::as_bytes(std::span(&number, 1));
  return Status::ok();
}

}  // namespace millrace
