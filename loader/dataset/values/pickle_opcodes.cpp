// SPDX-License-Identifier: Apache-2.0
#include "dataset/values/pickle_opcodes.h"

#include <array>

namespace millrace {
namespace {

struct OpcodeText {
  Opcode opcode{};
  const char* name = nullptr;
  const char* refused = nullptr;
};

constexpr auto makes_object = "makes an object";
constexpr auto makes_set = "makes a set";
constexpr auto registered = "refers to Python's registry of extensions";
constexpr auto outside = "refers to an object that is kept elsewhere";
constexpr auto buffer = "refers to a buffer that is kept elsewhere";

constexpr auto opcode_texts = [] {
  using enum Opcode;
  return std::to_array<OpcodeText>({
      {mark, "MARK"},
      {stop, "STOP"},
      {pop, "POP"},
      {pop_mark, "POP_MARK"},
      {dup, "DUP"},
      {float_line, "FLOAT"},
      {int_line, "INT"},
      {binint, "BININT"},
      {binint1, "BININT1"},
      {long_line, "LONG"},
      {binint2, "BININT2"},
      {none, "NONE"},
      {persid, "PERSID", outside},
      {binpersid, "BINPERSID", outside},
      {reduce, "REDUCE", "calls a function"},
      {string_line, "STRING"},
      {binstring, "BINSTRING"},
      {short_binstring, "SHORT_BINSTRING"},
      {unicode_line, "UNICODE"},
      {binunicode, "BINUNICODE"},
      {append, "APPEND"},
      {build, "BUILD", "changes an object"},
      {global, "GLOBAL", "imports"},
      {dict, "DICT"},
      {empty_dict, "EMPTY_DICT"},
      {appends, "APPENDS"},
      {get, "GET"},
      {binget, "BINGET"},
      {inst, "INST", makes_object},
      {long_binget, "LONG_BINGET"},
      {list, "LIST"},
      {empty_list, "EMPTY_LIST"},
      {obj, "OBJ", makes_object},
      {put, "PUT"},
      {binput, "BINPUT"},
      {long_binput, "LONG_BINPUT"},
      {setitem, "SETITEM"},
      {tuple, "TUPLE"},
      {empty_tuple, "EMPTY_TUPLE"},
      {setitems, "SETITEMS"},
      {binfloat, "BINFLOAT"},
      {binbytes, "BINBYTES"},
      {short_binbytes, "SHORT_BINBYTES"},
      {proto, "PROTO"},
      {newobj, "NEWOBJ", makes_object},
      {ext1, "EXT1", registered},
      {ext2, "EXT2", registered},
      {ext4, "EXT4", registered},
      {tuple1, "TUPLE1"},
      {tuple2, "TUPLE2"},
      {tuple3, "TUPLE3"},
      {newtrue, "NEWTRUE"},
      {newfalse, "NEWFALSE"},
      {long1, "LONG1"},
      {long4, "LONG4"},
      {short_binunicode, "SHORT_BINUNICODE"},
      {binunicode8, "BINUNICODE8"},
      {binbytes8, "BINBYTES8"},
      {empty_set, "EMPTY_SET", makes_set},
      {additems, "ADDITEMS", makes_set},
      {frozenset, "FROZENSET", makes_set},
      {newobj_ex, "NEWOBJ_EX", makes_object},
      {stack_global, "STACK_GLOBAL", "imports"},
      {memoize, "MEMOIZE"},
      {frame, "FRAME"},
      {bytearray8, "BYTEARRAY8"},
      {next_buffer, "NEXT_BUFFER", buffer},
      {readonly_buffer, "READONLY_BUFFER", buffer},
  });
}();

/// Indexed by the opcode's byte.
constexpr auto table = [] {
  std::array<OpcodeText, 256> table{};
  for (const OpcodeText& text : opcode_texts) table[static_cast<std::uint8_t>(text.opcode)] = text;
  return table;
}();

}  // namespace

const char* to_string(Opcode opcode) { return table[static_cast<std::uint8_t>(opcode)].name; }

const char* refused(Opcode opcode) { return table[static_cast<std::uint8_t>(opcode)].refused; }

}  // namespace millrace
