// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <optional>
#include <variant>

#include "dataset/values/pickle_machine.h"
#include "dataset/values/python_text.h"

namespace millrace {
namespace {

constexpr auto too_large = "is an integer beyond 64 bits";

}  // namespace

bool PickleMachine::unsigned_integer(std::size_t bytes) {
  std::uint64_t number = 0;
  if (!at_.little_endian(bytes, number)) return cut_short();
  return push(Value(static_cast<std::int64_t>(number)));
}

bool PickleMachine::signed_integer() {
  std::uint64_t number = 0;
  if (!at_.little_endian(4, number)) return cut_short();
  const auto narrow = static_cast<std::int32_t>(static_cast<std::uint32_t>(number));
  return push(Value(std::int64_t{narrow}));
}

/// Reads two's complement of any length. Bytes beyond the eighth may only repeat the sign.
bool PickleMachine::long_integer(std::size_t length_bytes) {
  std::span<const std::byte> digits;
  if (!counted(length_bytes, digits)) return false;
  const bool is_negative = !digits.empty() && std::to_integer<unsigned>(digits.back()) >= 0x80;
  const std::uint8_t sign = is_negative ? 0xff : 0;
  std::uint64_t number = is_negative ? ~std::uint64_t{0} : 0;
  for (std::size_t n = digits.size(); n-- > 0;) {
    const auto digit = std::to_integer<std::uint8_t>(digits[n]);
    if (n >= 8 && digit != sign) return fail(too_large);
    number = number << 8 | digit;
  }
  const auto integer = static_cast<std::int64_t>(number);
  if ((integer < 0) != is_negative) return fail(too_large);
  return push(Value(integer));
}

/// Reads the opcodes INT and LONG. The "L" at the end is optional. INT also encodes bools, as 00
/// and 01.
bool PickleMachine::integer_line() {
  std::string_view digits;
  if (!line(digits)) return false;
  if (opcode_ == Opcode::int_line && (digits == "00" || digits == "01"))
    return push(Values::boolean(digits == "01"));
  std::string_view number = digits;
  if (number.ends_with('L')) number.remove_suffix(1);
  const std::optional<std::int64_t> integer = integer_of(number);
  if (!integer) return fail("needs an integer of 64 bits but has '" + shown(digits) + "'");
  return push(Value(*integer));
}

bool PickleMachine::real() {
  std::uint64_t bits = 0;
  if (!at_.big_endian(8, bits)) return cut_short();
  return push(Value(std::bit_cast<double>(bits)));
}

bool PickleMachine::real_line() {
  std::string_view digits;
  if (!line(digits)) return false;
  const std::optional<double> number = real_of(digits);
  if (!number) return fail("needs a float but has '" + shown(digits) + "'");
  return push(Value(*number));
}

bool PickleMachine::counted(std::size_t length_bytes, std::span<const std::byte>& bytes) {
  std::uint64_t length = 0;
  if (!at_.little_endian(length_bytes, length)) return cut_short();
  if (at_.take(length, bytes)) return true;
  // BINSTRING and LONG4 have signed lengths. A negative length, read as unsigned, is always too
  // large.
  return fail("has " + std::to_string(length) + " bytes, and " + std::to_string(at_.remaining()) +
              " are left");
}

bool PickleMachine::bytes(std::size_t length_bytes) {
  std::span<const std::byte> bytes;
  return counted(length_bytes, bytes) && push(Value(bytes));
}

bool PickleMachine::text(std::size_t length_bytes) {
  std::span<const std::byte> bytes;
  if (!counted(length_bytes, bytes)) return false;
  if (!is_utf8(as_text(bytes))) return fail("is not UTF-8");
  return push(Value(as_text(bytes)));
}

bool PickleMachine::string_line() {
  std::string_view quoted;
  if (!line(quoted)) return false;
  const auto string = string_of(quoted, values_.unescaped());
  if (!string) return fail("needs a string in quotes but has " + shown(quoted));
  return push(Value(std::as_bytes(std::span(*string))));
}

bool PickleMachine::unicode_line() {
  std::string_view escaped;
  if (!line(escaped)) return false;
  const auto unicode = unicode_of(escaped, values_.unescaped());
  if (!unicode) return fail("needs a text but has " + shown(escaped));
  return push(Value(*unicode));
}

bool PickleMachine::tuple_of_last(std::size_t count) {
  if (above_mark() < count) return lacks_values();
  const std::uint32_t tuple = values_.add(Collection::tuple);
  return move_items(tuple, stack_.size() - count) && push(tuple);
}

bool PickleMachine::collect_to_mark(Collection kind) {
  std::size_t first = 0;
  if (!to_mark(first)) return false;
  const std::uint32_t collection = values_.add(kind);
  return move_items(collection, first) && push(collection);
}

bool PickleMachine::append_last(Collection kind, std::size_t count) {
  return above_mark() <= count ? lacks_values() : move_into_last(kind, stack_.size() - count);
}

bool PickleMachine::append_to_mark(Collection kind) {
  std::size_t first = 0;
  if (!to_mark(first)) return false;
  // The number of values above the mark.
  const std::size_t count = stack_.size() - first;
  return above_mark() <= count ? lacks_values() : move_into_last(kind, first);
}

/// Removes the last mark. `first` receives the position of the first value above it.
bool PickleMachine::to_mark(std::size_t& first) {
  if (marks_.empty()) return fail("finds no MARK");
  first = marks_.back();
  marks_.pop_back();
  return true;
}

/// Moves the values from `first` on into the list or dictionary before them.
bool PickleMachine::move_into_last(Collection kind, std::size_t first) {
  const std::uint32_t collection = stack_[first - 1];
  const auto* items = std::get_if<Items>(&values_.at(collection));
  if (items == nullptr || items->kind != kind)
    return fail(std::string("finds no ") + (kind == Collection::list ? "list" : "dictionary") +
                " to put values into");
  return move_items(collection, first);
}

bool PickleMachine::move_items(std::uint32_t collection, std::size_t first) {
  const bool has_pairs = std::get<Items>(values_.at(collection)).kind == Collection::dictionary;
  if (has_pairs && (stack_.size() - first) % 2 != 0) return fail("finds a key without a value");
  for (std::size_t n = first; n < stack_.size(); ++n) values_.append(collection, stack_[n]);
  stack_.resize(first);
  return true;
}

}  // namespace millrace
