// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataset/values/capacity_bytes.h"
#include "dataset/values/value.h"

namespace millrace {

/// Parses the output of Python's pickle, protocols 0 to 5. Supports None, bools, integers of 64
/// bits, floats, bytes and bytearrays, text, tuples, lists, dictionaries, and references to such
/// values.
///
/// Never runs anything. Sets and every opcode that would import, call or build something (GLOBAL,
/// REDUCE, BUILD, persistent numbers, buffers of protocol 5 ...) are refused with the opcode's name
/// and position. Bytes that Python 3 wrote in protocols 0 to 2 are also refused, since they are
/// stored as a call. Strings of Python 2 become bytes.
///
/// Follows Python's Lib/pickletools.py, which describes each opcode. Stricter than Python: text
/// must be UTF-8 without surrogates, a memo number must be less than the number of input bytes, and
/// STOP must be the last byte.
///
/// For one thread at a time. Keeps its memory from one input to the next.
class PickleReader {
 public:
  /// On success `values` refers to `input`. On failure the reason says what is wrong and where.
  Status read(std::span<const std::byte> input, Values& values);
  /// Bytes of memory that it keeps for the next input, beside those of the values.
  std::size_t held_bytes() const { return capacity_bytes(stack_, marks_, memo_); }

 private:
  // The stack and the memo hold numbers of values; the marks are positions in the stack.
  std::vector<std::uint32_t> stack_, marks_, memo_;
};

}  // namespace millrace
