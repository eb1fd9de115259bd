// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/values/byte_cursor.h"
#include "dataset/values/pickle_opcodes.h"
#include "dataset/values/value.h"

namespace millrace {

/// Interprets one pickle for `PickleReader`. A function that returns false has set `problem_`.
class PickleMachine {
 public:
  /// The vectors must be empty. They are scratch memory.
  PickleMachine(std::span<const std::byte> input, Values& values, std::vector<std::uint32_t>& stack,
                std::vector<std::uint32_t>& marks, std::vector<std::uint32_t>& memo)
      : input_bytes_(input.size()),
        at_(input),
        values_(values),
        stack_(stack),
        marks_(marks),
        memo_(memo) {}

  Status run();

 private:
  using Numbers = std::vector<std::uint32_t>;

  bool fail(const std::string& what);
  bool cut_short() { return fail("goes beyond the end"); }
  bool lacks_values() { return fail("finds fewer values than it needs"); }

  bool next();
  bool carry_out();
  bool change();
  bool refuse();

  // Values.
  bool push(std::uint32_t number) {
    stack_.push_back(number);
    return true;
  }
  bool push(const Value& value) { return push(values_.add(value)); }
  bool unsigned_integer(std::size_t bytes);
  bool signed_integer();
  bool long_integer(std::size_t length_bytes);
  bool integer_line();
  bool real();
  bool real_line();
  bool bytes(std::size_t length_bytes);
  bool text(std::size_t length_bytes);
  bool string_line();
  bool unicode_line();
  bool line(std::string_view& text) { return at_.line(text) || cut_short(); }
  bool counted(std::size_t length_bytes, std::span<const std::byte>& bytes);

  // Collections.
  bool empty(Collection kind) { return push(values_.add(kind)); }
  bool tuple_of_last(std::size_t count);
  bool collect_to_mark(Collection kind);
  bool append_last(Collection kind, std::size_t count);
  bool append_to_mark(Collection kind);
  bool to_mark(std::size_t& first);
  bool move_into_last(Collection kind, std::size_t first);
  bool move_items(std::uint32_t collection, std::size_t first);

  // The stack and the memo.
  std::size_t above_mark() const {
    return stack_.size() - (marks_.empty() ? 0 : std::size_t{marks_.back()});
  }
  bool pop();
  bool pop_mark();
  bool memo_number(std::size_t bytes);
  bool memo_line();
  bool put_at(std::uint64_t place);
  bool get_at(std::uint64_t place);

  bool protocol();
  bool frame();
  bool stop();

  std::size_t input_bytes_;
  ByteCursor at_;
  Values& values_;
  Numbers& stack_;
  Numbers& marks_;
  Numbers& memo_;
  std::size_t in_memo_ = 0;
  Opcode opcode_ = Opcode::stop;
  std::size_t opcode_at_ = 0;
  std::string problem_;
};

}  // namespace millrace
