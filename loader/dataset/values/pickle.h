// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataset/values/value.h"

namespace millrace {

/// Reads what Python's pickle has written, in protocols 0 to 5, as far as it is made of None,
/// bools, integers of 64 bits, floats, bytes and bytearrays, text, tuples, lists and dictionaries,
/// and references to such values. Nothing of it is ever run: what would import, call or build
/// something (GLOBAL, REDUCE, BUILD, persistent numbers, buffers of protocol 5 ...) and sets are
/// refused by the opcode's name and place. So are bytes that Python 3 wrote in protocols 0 to 2,
/// since they are a call there. Strings of Python 2 are bytes.
///
/// After Python's Lib/pickletools.py, which describes each opcode. Text must be UTF-8 without
/// surrogates, a number in the memo less than the bytes of the input, and STOP the last byte.
///
/// Threads: one at a time. It keeps its memory from one input to the next.
class PickleReader {
 public:
  /// `values` refers to `input` if it went well; bad says what is wrong and where.
  Status read(std::span<const std::byte> input, Values& values);

 private:
  // The stack, where its marks are, and the memo: numbers of values.
  std::vector<std::uint32_t> stack_, marks_, memo_;
};

}  // namespace millrace
