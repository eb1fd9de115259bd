// SPDX-License-Identifier: Apache-2.0
#include "dataset/values/msgpack.h"

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <variant>

#include "dataset/values/byte_cursor.h"

namespace millrace {
namespace {

/// Parser of one value. A function that returns false has set `problem_`.
class MsgpackMachine {
 public:
  MsgpackMachine(std::span<const std::byte> input, Values& values) : at_(input), values_(values) {}

  Status run() {
    values_.start(at_.remaining());
    do {
      if (!next()) return Status::bad("the MessagePack value " + problem_);
    } while (levels_ > 0);
    if (at_.remaining() > 0)
      return Status::bad("the MessagePack value has " + std::to_string(at_.remaining()) +
                         " bytes behind it");
    const Status status = values_.finish(root_);
    return status.is_ok() ? status
                          : Status::bad("the MessagePack value is refused: " + status.reason());
  }

 private:
  /// An incomplete array or map, and its last item.
  struct Open {
    std::uint32_t collection = 0;
    std::uint64_t items = 0;
    std::uint64_t left = 0;
    std::uint32_t last = 0;
  };

  bool fail(const std::string& what) {
    problem_ = "has at byte " + std::to_string(value_at_) + " " + what;
    return false;
  }

  bool next();
  bool small(std::uint8_t byte);
  bool large(std::uint8_t byte);
  bool put(std::uint32_t number);
  bool put(const Value& value) { return put(values_.add(value)); }
  bool integer(std::size_t bytes, bool is_signed);
  bool real(std::size_t bytes);
  bool bytes(std::uint64_t count);
  bool text(std::uint64_t count);
  bool collection(Collection kind, std::uint64_t count);
  bool extension(std::uint64_t count);
  bool counted(std::size_t length_bytes, bool (MsgpackMachine::*make)(std::uint64_t count));
  bool array(std::uint64_t count) { return collection(Collection::list, count); }
  bool map(std::uint64_t count) { return collection(Collection::dictionary, count); }
  bool is_numpy(std::uint32_t number) const;

  ByteCursor at_;
  Values& values_;
  std::array<Open, Values::max_levels> open_;
  std::size_t levels_ = 0;
  std::size_t value_at_ = 0;
  std::uint32_t root_ = Values::none;
  std::string problem_;
};

bool MsgpackMachine::next() {
  value_at_ = at_.offset();
  std::uint64_t byte = 0;
  if (!at_.little_endian(1, byte)) return fail("its end, where a value is missing");
  if (values_.too_many())
    return fail("more than " + std::to_string(Values::max_values) + " values before it");
  const auto type = static_cast<std::uint8_t>(byte);
  return type < 0xc0 || type >= 0xe0 ? small(type) : large(type);
}

/// Parses the types whose first byte includes the value or the length.
bool MsgpackMachine::small(std::uint8_t byte) {
  if (byte < 0x80) return put(Value(std::int64_t{byte}));
  if (byte < 0x90) return map(byte & 0x0f);
  if (byte < 0xa0) return array(byte & 0x0f);
  if (byte < 0xc0) return text(byte & 0x1f);
  return put(Value(std::int64_t{static_cast<std::int8_t>(byte)}));
}

bool MsgpackMachine::large(std::uint8_t byte) {
  using Machine = MsgpackMachine;
  switch (byte) {
    case 0xc0:
      return put(Values::none);
    case 0xc2:
    case 0xc3:
      return put(Values::boolean(byte == 0xc3));
    case 0xc4:
    case 0xc5:
    case 0xc6:
      return counted(std::size_t{1} << (byte - 0xc4), &Machine::bytes);
    case 0xc7:
    case 0xc8:
    case 0xc9:
      return counted(std::size_t{1} << (byte - 0xc7), &Machine::extension);
    case 0xca:
    case 0xcb:
      return real(byte == 0xca ? 4 : 8);
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
      return integer(std::size_t{1} << (byte - 0xcc), false);
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
      return integer(std::size_t{1} << (byte - 0xd0), true);
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
      return extension(std::uint64_t{1} << (byte - 0xd4));
    case 0xd9:
    case 0xda:
    case 0xdb:
      return counted(std::size_t{1} << (byte - 0xd9), &Machine::text);
    case 0xdc:
    case 0xdd:
      return counted(std::size_t{2} << (byte - 0xdc), &Machine::array);
    case 0xde:
    case 0xdf:
      return counted(std::size_t{2} << (byte - 0xde), &Machine::map);
    default:
      return fail("the type 0xc1, which is never used");
  }
}

/// Appends a value to the innermost incomplete collection. Outside of collections, the value
/// becomes the root.
bool MsgpackMachine::put(std::uint32_t number) {
  if (levels_ == 0) {
    root_ = number;
  } else {
    if (is_numpy(number)) return fail("an array or number of msgpack-numpy, which is not read");
    Open& open = open_[levels_ - 1];
    values_.append(open.collection, number);
    open.last = number;
    --open.left;
  }
  // Closes every collection that is now complete.
  while (levels_ > 0 && open_[levels_ - 1].left == 0) --levels_;
  return true;
}

/// Returns whether this value is the second item of a map of msgpack-numpy, {"nd": a bool, "type":
/// ...} with at least three entries.
bool MsgpackMachine::is_numpy(std::uint32_t number) const {
  const Open& open = open_[levels_ - 1];
  const Value& map = values_.at(open.collection);
  return open.items >= 6 && open.left + 1 == open.items &&
         std::get<Items>(map).kind == Collection::dictionary &&
         std::holds_alternative<bool>(values_.at(number)) && is_text(values_.at(open.last), "nd");
}

bool MsgpackMachine::integer(std::size_t bytes, bool is_signed) {
  std::uint64_t number = 0;
  if (!at_.big_endian(bytes, number)) return fail("an integer that goes beyond the end");
  if (is_signed) {
    const std::size_t unused_bits = 64 - 8 * bytes;
    return put(Value(static_cast<std::int64_t>(number << unused_bits) >> unused_bits));
  }
  if (number > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
    return fail("the integer " + std::to_string(number) + ", which is beyond int64");
  return put(Value(static_cast<std::int64_t>(number)));
}

bool MsgpackMachine::real(std::size_t bytes) {
  std::uint64_t bits = 0;
  if (!at_.big_endian(bytes, bits)) return fail("a float that goes beyond the end");
  if (bytes == 8) return put(Value(std::bit_cast<double>(bits)));
  return put(Value(double{std::bit_cast<float>(static_cast<std::uint32_t>(bits))}));
}

bool MsgpackMachine::counted(std::size_t length_bytes,
                             bool (MsgpackMachine::*make)(std::uint64_t count)) {
  std::uint64_t count = 0;
  if (!at_.big_endian(length_bytes, count)) return fail("a length that goes beyond the end");
  return (this->*make)(count);
}

bool MsgpackMachine::bytes(std::uint64_t count) {
  std::span<const std::byte> bytes;
  if (at_.take(count, bytes)) return put(Value(bytes));
  return fail(std::to_string(count) + " bytes, and " + std::to_string(at_.remaining()) +
              " are left");
}

bool MsgpackMachine::text(std::uint64_t count) {
  std::span<const std::byte> letters;
  if (at_.take(count, letters))
    return put(is_utf8(as_text(letters)) ? Value(as_text(letters)) : Value(letters));
  return fail("a str of " + std::to_string(count) + " bytes, and " +
              std::to_string(at_.remaining()) + " are left");
}

bool MsgpackMachine::collection(Collection kind, std::uint64_t count) {
  const bool has_pairs = kind == Collection::dictionary;
  const std::uint64_t items = has_pairs ? 2 * count : count;
  if (items > at_.remaining())
    return fail((has_pairs ? "a map of " : "an array of ") + std::to_string(count) +
                " in the last " + std::to_string(at_.remaining()) + " bytes");
  const std::uint32_t number = values_.add(kind);
  if (items == 0) return put(number);
  if (levels_ == open_.size())
    return fail("more than " + std::to_string(Values::max_levels) + " levels of arrays and maps");
  // The collection counts as an item of its parent now. If it is the parent's last item, the parent
  // is closed after this collection.
  if (levels_ > 0) {
    --open_[levels_ - 1].left;
    open_[levels_ - 1].last = number;
    values_.append(open_[levels_ - 1].collection, number);
  } else {
    root_ = number;
  }
  open_[levels_++] = {.collection = number, .items = items, .left = items};
  return true;
}

bool MsgpackMachine::extension(std::uint64_t) {
  std::uint64_t type = 0;
  if (!at_.little_endian(1, type)) return fail("an ext that goes beyond the end");
  const std::int64_t number = static_cast<std::int64_t>(type) - (type < 0x80 ? 0 : 0x100);
  return fail("ext type " + std::to_string(number) + (number == -1 ? " (a timestamp)" : "") +
              ", which is not read");
}

}  // namespace

Status read_msgpack(std::span<const std::byte> input, Values& values) {
  return MsgpackMachine(input, values).run();
}

}  // namespace millrace
