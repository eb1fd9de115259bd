// SPDX-License-Identifier: Apache-2.0
#include "dataset/values/pickle_machine.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <variant>

#include "dataset/values/pickle.h"
#include "dataset/values/python_text.h"

namespace millrace {
namespace {

constexpr std::uint32_t unset = std::numeric_limits<std::uint32_t>::max();
constexpr unsigned newest_protocol = 5;

}  // namespace

Status PickleReader::read(std::span<const std::byte> input, Values& values) {
  stack_.clear();
  marks_.clear();
  memo_.clear();
  values.start(input.size());
  return PickleMachine(input, values, stack_, marks_, memo_).run();
}

Status PickleMachine::run() {
  while (next() && carry_out()) {
    if (opcode_ == Opcode::stop) {
      const Status status = values_.finish(stack_.back());
      return status.is_ok() ? status : Status::bad("the pickle is refused: " + status.reason());
    }
    if (values_.too_many() || std::max(stack_.size(), marks_.size()) > Values::max_values) {
      fail("is of more than " + std::to_string(Values::max_values) + " values");
      break;
    }
  }
  return Status::bad("the pickle" + problem_);
}

bool PickleMachine::fail(const std::string& what) {
  problem_ = std::string("'s ") + to_string(opcode_) + " at byte " + std::to_string(opcode_at_) +
             " " + what;
  return false;
}

bool PickleMachine::next() {
  opcode_at_ = at_.offset();
  std::uint64_t byte = 0;
  if (!at_.little_endian(1, byte)) {
    problem_ = " ends at byte " + std::to_string(opcode_at_) + " without STOP";
    return false;
  }
  opcode_ = static_cast<Opcode>(byte);
  if (to_string(opcode_) != nullptr) return true;
  problem_ = " has " + std::to_string(byte) + " at byte " + std::to_string(opcode_at_) +
             ", which is not an opcode";
  return false;
}

bool PickleMachine::carry_out() {
  switch (opcode_) {
    case Opcode::none:
      return push(Values::none);
    case Opcode::newtrue:
    case Opcode::newfalse:
      return push(Values::boolean(opcode_ == Opcode::newtrue));
    case Opcode::binint1:
      return unsigned_integer(1);
    case Opcode::binint2:
      return unsigned_integer(2);
    case Opcode::binint:
      return signed_integer();
    case Opcode::long1:
      return long_integer(1);
    case Opcode::long4:
      return long_integer(4);
    case Opcode::int_line:
    case Opcode::long_line:
      return integer_line();
    case Opcode::binfloat:
      return real();
    case Opcode::float_line:
      return real_line();
    case Opcode::short_binstring:
    case Opcode::short_binbytes:
      return bytes(1);
    case Opcode::binstring:
    case Opcode::binbytes:
      return bytes(4);
    case Opcode::binbytes8:
    case Opcode::bytearray8:
      return bytes(8);
    case Opcode::short_binunicode:
      return text(1);
    case Opcode::binunicode:
      return text(4);
    case Opcode::binunicode8:
      return text(8);
    case Opcode::string_line:
      return string_line();
    case Opcode::unicode_line:
      return unicode_line();
    case Opcode::empty_tuple:
      return empty(Collection::tuple);
    case Opcode::empty_list:
      return empty(Collection::list);
    case Opcode::empty_dict:
      return empty(Collection::dictionary);
    case Opcode::tuple1:
      return tuple_of_last(1);
    case Opcode::tuple2:
      return tuple_of_last(2);
    case Opcode::tuple3:
      return tuple_of_last(3);
    case Opcode::tuple:
      return collect_to_mark(Collection::tuple);
    case Opcode::list:
      return collect_to_mark(Collection::list);
    case Opcode::dict:
      return collect_to_mark(Collection::dictionary);
    default:
      return change();
  }
}

/// Handles opcodes that do not push a new value.
bool PickleMachine::change() {
  switch (opcode_) {
    case Opcode::append:
      return append_last(Collection::list, 1);
    case Opcode::setitem:
      return append_last(Collection::dictionary, 2);
    case Opcode::appends:
      return append_to_mark(Collection::list);
    case Opcode::setitems:
      return append_to_mark(Collection::dictionary);
    case Opcode::mark:
      marks_.push_back(static_cast<std::uint32_t>(stack_.size()));
      return true;
    case Opcode::pop:
      return pop();
    case Opcode::pop_mark:
      return pop_mark();
    case Opcode::dup:
      return above_mark() > 0 ? push(stack_.back()) : lacks_values();
    case Opcode::put:
    case Opcode::get:
      return memo_line();
    case Opcode::binput:
    case Opcode::binget:
      return memo_number(1);
    case Opcode::long_binput:
    case Opcode::long_binget:
      return memo_number(4);
    case Opcode::memoize:
      return put_at(in_memo_);
    case Opcode::proto:
      return protocol();
    case Opcode::frame:
      return frame();
    case Opcode::stop:
      return stop();
    default:
      return refuse();
  }
}

/// Fails with a message that names the opcode's action and, for an import, the imported name.
bool PickleMachine::refuse() {
  std::string would = refused(opcode_);
  if (opcode_ == Opcode::global || opcode_ == Opcode::inst) {
    std::string_view module, name;
    if (!line(module) || !line(name)) return false;
    if (module == "_codecs" && name == "encode")
      return fail(
          "imports _codecs.encode, by which Python 3 writes bytes in protocols 0 to 2: these are "
          "read only of protocol 3 and later");
    would += " " + shown(module) + "." + shown(name);
  }
  if (opcode_ == Opcode::stack_global && above_mark() >= 2) {
    const auto* module = std::get_if<std::string_view>(&values_.at(stack_[stack_.size() - 2]));
    const auto* name = std::get_if<std::string_view>(&values_.at(stack_.back()));
    if (module != nullptr && name != nullptr) would += " " + shown(*module) + "." + shown(*name);
  }
  return fail(would +
              ", which is never done: only None, bools, integers, floats, bytes, texts, tuples, "
              "lists and dictionaries are read");
}

bool PickleMachine::pop() {
  if (above_mark() > 0) {
    stack_.pop_back();
  } else if (!marks_.empty()) {
    marks_.pop_back();
  } else {
    return lacks_values();
  }
  return true;
}

bool PickleMachine::pop_mark() {
  std::size_t first = 0;
  if (!to_mark(first)) return false;
  stack_.resize(first);
  return true;
}

bool PickleMachine::memo_number(std::size_t bytes) {
  std::uint64_t place = 0;
  if (!at_.little_endian(bytes, place)) return cut_short();
  const bool puts = opcode_ == Opcode::binput || opcode_ == Opcode::long_binput;
  return puts ? put_at(place) : get_at(place);
}

bool PickleMachine::memo_line() {
  std::string_view digits;
  if (!line(digits)) return false;
  const std::optional<std::int64_t> place = integer_of(digits);
  if (!place || *place < 0) return fail("needs a number but has '" + shown(digits) + "'");
  const auto number = static_cast<std::uint64_t>(*place);
  return opcode_ == Opcode::put ? put_at(number) : get_at(number);
}

bool PickleMachine::put_at(std::uint64_t place) {
  if (above_mark() == 0) return lacks_values();
  // Memo numbers count the stored values, each of which takes at least a byte of input. So the memo
  // never needs to be longer than the input.
  if (place >= std::min(input_bytes_, Values::max_values))
    return fail("has number " + std::to_string(place) + ", more than there can be values");
  if (place >= memo_.size()) memo_.resize(static_cast<std::size_t>(place) + 1, unset);
  std::uint32_t& entry = memo_[static_cast<std::size_t>(place)];
  if (entry == unset) ++in_memo_;
  entry = stack_.back();
  return true;
}

bool PickleMachine::get_at(std::uint64_t place) {
  if (place >= memo_.size() || memo_[static_cast<std::size_t>(place)] == unset)
    return fail("refers to number " + std::to_string(place) + ", which was not put");
  return push(memo_[static_cast<std::size_t>(place)]);
}

bool PickleMachine::protocol() {
  std::uint64_t protocol = 0;
  if (!at_.little_endian(1, protocol)) return cut_short();
  if (protocol <= newest_protocol) return true;
  return fail("has " + std::to_string(protocol) + ": protocols 0 to 5 are known");
}

bool PickleMachine::frame() {
  std::uint64_t length = 0;
  if (!at_.little_endian(8, length) || length > at_.remaining()) return cut_short();
  return true;
}

bool PickleMachine::stop() {
  if (above_mark() == 0) return lacks_values();
  if (at_.remaining() > 0)
    return fail("has " + std::to_string(at_.remaining()) + " bytes behind it");
  return true;
}

}  // namespace millrace
