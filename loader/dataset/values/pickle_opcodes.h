// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace {

/// All opcodes of pickle protocols 0 to 5, from Python's Lib/pickletools.py.
enum class Opcode : std::uint8_t {
  mark = '(',
  stop = '.',
  pop = '0',
  pop_mark = '1',
  dup = '2',
  float_line = 'F',
  int_line = 'I',
  binint = 'J',
  binint1 = 'K',
  long_line = 'L',
  binint2 = 'M',
  none = 'N',
  persid = 'P',
  binpersid = 'Q',
  reduce = 'R',
  string_line = 'S',
  binstring = 'T',
  short_binstring = 'U',
  unicode_line = 'V',
  binunicode = 'X',
  append = 'a',
  build = 'b',
  global = 'c',
  dict = 'd',
  empty_dict = '}',
  appends = 'e',
  get = 'g',
  binget = 'h',
  inst = 'i',
  long_binget = 'j',
  list = 'l',
  empty_list = ']',
  obj = 'o',
  put = 'p',
  binput = 'q',
  long_binput = 'r',
  setitem = 's',
  tuple = 't',
  empty_tuple = ')',
  setitems = 'u',
  binfloat = 'G',
  binbytes = 'B',
  short_binbytes = 'C',
  proto = 0x80,
  newobj,
  ext1,
  ext2,
  ext4,
  tuple1,
  tuple2,
  tuple3,
  newtrue,
  newfalse,
  long1,
  long4,
  short_binunicode,
  binunicode8,
  binbytes8,
  empty_set,
  additems,
  frozenset,
  newobj_ex,
  stack_global,
  memoize,
  frame,
  bytearray8,
  next_buffer,
  readonly_buffer,
};

/// Returns the opcode's name in pickletools, such as "SHORT_BINBYTES"; null for an unknown one.
const char* to_string(Opcode opcode);

/// Returns the action of an opcode that is refused, such as "calls a function"; null for others.
const char* refused(Opcode opcode);

}  // namespace millrace
