// SPDX-License-Identifier: Apache-2.0
//
// Handmade pickles: refused ones, and those that would take more memory or time than their length
// justifies.
#include "dataset/values/pickle.h"

#include <gmock/gmock.h>

#include <chrono>

#include "loader/dataset/values/rendered.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using testing::bytes_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::literal;
using testing::rendered;

class Pickle : public ::testing::Test {
 protected:
  /// Returns the value as text, or the reason if it is bad.
  std::string read(std::string_view pickle) {
    const Status status = reader_.read(bytes_of(pickle), values_);
    return status.is_ok() ? rendered(values_) : status.reason();
  }

  Values values_;
  PickleReader reader_;
};

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  for (std::size_t n = 0; n < times; ++n) all += text;
  return all;
}

/// Encodes a number as pickle's opcodes do.
std::string four_bytes(std::uint32_t number) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

TEST_F(Pickle, TheValuesAreViewsOfTheInput) {
  const std::string pickle = literal(
      "\x80\x03"
      "C\x03"
      "abcX\x02\0\0\0deK\x07\x87.");
  ASSERT_EQ(read(pickle), "(b616263;s6465;i7;)");
  const Value& root = values_.root();
  EXPECT_EQ(std::get<std::span<const std::byte>>(values_.item(root, 0)).data(),
            bytes_of(pickle).data() + 4);
  EXPECT_EQ(std::get<std::string_view>(values_.item(root, 1)).data(), pickle.data() + 12);
}

TEST_F(Pickle, StackMarksAndMemo) {
  EXPECT_EQ(read("NK\x01"
                 "0."),
            "N")
      << "POP";
  EXPECT_EQ(read("N(0."), "N") << "POP of a mark";
  EXPECT_EQ(read("N(K\x01K\x02"
                 "1."),
            "N")
      << "POP_MARK";
  EXPECT_EQ(read("K\x01"
                 "2\x86."),
            "(i1;i1;)")
      << "DUP";
  EXPECT_EQ(read("((K\x01tK\x02l."), "[(i1;)i2;]");
  EXPECT_EQ(read("(K\x01Nd."), "{i1;N}");
  EXPECT_EQ(read("}K\x01NsK\x01K\x02s."), "{i1;i2;}") << "the last of two counts";
  EXPECT_EQ(read(literal("]q\x05(h\x05"
                         "0K\x01"
                         "e.")),
            "[i1;]");
  EXPECT_EQ(read(literal("K\x01p3\n0g3\n.")), "i1;");
  EXPECT_EQ(read(literal("K\x01r\x03\0\0\0"
                         "0j\x03\0\0\0.")),
            "i1;");
  EXPECT_EQ(read("K\x01\x94K\x02\x94h" + literal("\0h\x01\x87.")), "(i2;i1;i2;)");
  EXPECT_EQ(read("K\x01\x94K\x02\x94"
                 "00h" +
                 literal("\0h\x01\x86.")),
            "(i1;i2;)");
}

TEST_F(Pickle, IntegersOfEveryLength) {
  EXPECT_EQ(read(literal("\x8a\0.")), "i0;");
  EXPECT_EQ(read("\x8a\x01\xff."), "i-1;");
  EXPECT_EQ(read(literal("\x8a\x02\xff\0.")), "i255;");
  EXPECT_EQ(read("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f."), "i9223372036854775807;");
  EXPECT_EQ(read(literal("\x8a\x08\0\0\0\0\0\0\0\x80.")), "i-9223372036854775808;");
  EXPECT_EQ(read(literal("\x8a\x0a\x05\0\0\0\0\0\0\0\0\0.")), "i5;") << "the sign may go on";
  EXPECT_EQ(read("\x8a\x09" + std::string(8, '\xfe') + "\xff."), "i-72340172838076674;");
  EXPECT_EQ(read(literal("\x8b\x01\0\0\0\x07.")), "i7;");
  for (const std::string& large :
       {literal("\x8a\x09\0\0\0\0\0\0\0\x80\0."), "\x8a\x09" + std::string(8, '\x7f') + "\xff.",
        literal("\x8a\x09\0\0\0\0\0\0\0\0\x01.")})
    EXPECT_EQ(read(large), "the pickle's LONG1 at byte 0 is an integer beyond 64 bits");
  EXPECT_EQ(read("I9223372036854775807\n."), "i9223372036854775807;");
  EXPECT_EQ(read("I9223372036854775808\n."),
            "the pickle's INT at byte 0 needs an integer of 64 bits but has '9223372036854775808'");
  EXPECT_EQ(read("L-9223372036854775808L\n."), "i-9223372036854775808;");
}

struct Refused {
  const char* name;
  std::string pickle;
  const char* what;
};

TEST_F(Pickle, WhatWouldRunSomethingIsRefusedByName) {
  const std::string four(4, '\x01');
  const std::vector<Refused> all = {
      {"GLOBAL", "Nc__builtin__\neval\n.", "imports __builtin__.eval, which is never done"},
      {"GLOBAL", "Nc_codecs\nencode\n.", "read only of protocol 3 and later"},
      {"STACK_GLOBAL", "X\x02" + literal("\0\0\0os\x8c\x06system\x93."), "imports os.system"},
      {"STACK_GLOBAL", "N\x93.", "imports"},
      {"REDUCE", "NR.", "calls a function"},
      {"BUILD", "Nb.", "changes an object"},
      {"INST", "N(ios\nsystem\n.", "makes an object os.system"},
      {"OBJ", "N(o.", "makes an object"},
      {"NEWOBJ", "N\x81.", "makes an object"},
      {"NEWOBJ_EX", "N\x92.", "makes an object"},
      {"EXT1", "N\x82\x01.", "registry"},
      {"EXT2", "N\x83\x01\x01.", "registry"},
      {"EXT4", "N\x84" + four + ".", "registry"},
      {"PERSID", "NP1\n.", "kept elsewhere"},
      {"BINPERSID", "NQ.", "kept elsewhere"},
      {"EMPTY_SET", "N\x8f.", "makes a set"},
      {"ADDITEMS", "N(\x90.", "makes a set"},
      {"FROZENSET", "N(\x91.", "makes a set"},
      {"NEXT_BUFFER", "N\x97.", "a buffer that is kept elsewhere"},
      {"READONLY_BUFFER", "N\x98.", "a buffer that is kept elsewhere"},
  };
  for (const Refused& one : all)
    EXPECT_THAT(read(one.pickle),
                AllOf(HasSubstr(std::string("the pickle's ") + one.name + " at byte "),
                      HasSubstr(one.what)))
        << one.name;
  EXPECT_THAT(read("N(c\x1b[2J\n" + std::string(1000, 'x') + "\n."),
              AllOf(HasSubstr("imports ?[2J.xxx"), ::testing::SizeIs(::testing::Lt(500U))));
}

TEST_F(Pickle, DamageIsNamedWithItsPlace) {
  EXPECT_EQ(read(""), "the pickle ends at byte 0 without STOP");
  EXPECT_EQ(read("N"), "the pickle ends at byte 1 without STOP");
  EXPECT_EQ(read("N\xfe."), "the pickle has 254 at byte 1, which is not an opcode");
  EXPECT_EQ(read("."), "the pickle's STOP at byte 0 finds fewer values than it needs");
  EXPECT_EQ(read("N(."), "the pickle's STOP at byte 2 finds fewer values than it needs");
  EXPECT_EQ(read("N.N"), "the pickle's STOP at byte 1 has 1 bytes behind it");
  EXPECT_EQ(read("\x80\x06N."), "the pickle's PROTO at byte 0 has 6: protocols 0 to 5 are known");
  EXPECT_EQ(read("C\x04"
                 "abc"),
            "the pickle's SHORT_BINBYTES at byte 0 has 4 bytes, and 3 are left");
  EXPECT_EQ(read("\x8c\x02\xc3\x28."), "the pickle's SHORT_BINUNICODE at byte 0 is not UTF-8");
  EXPECT_EQ(read("\x8c\x03\xed\xa0\x80."), "the pickle's SHORT_BINUNICODE at byte 0 is not UTF-8");
  EXPECT_EQ(read("N\x86."), "the pickle's TUPLE2 at byte 1 finds fewer values than it needs");
  EXPECT_EQ(read("N(N\x86."), "the pickle's TUPLE2 at byte 3 finds fewer values than it needs");
  EXPECT_EQ(read("Nt."), "the pickle's TUPLE at byte 1 finds no MARK");
  EXPECT_EQ(read("(Nd."), "the pickle's DICT at byte 2 finds a key without a value");
  EXPECT_EQ(read(")Na."), "the pickle's APPEND at byte 2 finds no list to put values into");
  EXPECT_EQ(read("(Ne."), "the pickle's APPENDS at byte 2 finds fewer values than it needs");
  EXPECT_EQ(read("](((e."), "the pickle's APPENDS at byte 4 finds fewer values than it needs");
  EXPECT_EQ(read("](NNu."),
            "the pickle's SETITEMS at byte 4 finds no dictionary to put values into");
  EXPECT_EQ(read("Na."), "the pickle's APPEND at byte 1 finds fewer values than it needs");
  EXPECT_EQ(read("0."), "the pickle's POP at byte 0 finds fewer values than it needs");
  EXPECT_EQ(read("2."), "the pickle's DUP at byte 0 finds fewer values than it needs");
  EXPECT_EQ(read("h\x01."), "the pickle's BINGET at byte 0 refers to number 1, which was not put");
  EXPECT_EQ(read("Nq\x03h\x02."),
            "the pickle's BINGET at byte 3 refers to number 2, which was not put");
  EXPECT_EQ(read("Np-1\n."), "the pickle's PUT at byte 1 needs a number but has '-1'");
  EXPECT_EQ(read("Fx\n."), "the pickle's FLOAT at byte 0 needs a float but has 'x'");
  EXPECT_EQ(read("S'a\n."), "the pickle's STRING at byte 0 needs a string in quotes but has 'a");
  EXPECT_EQ(read("S'\\q'\n."),
            "the pickle's STRING at byte 0 needs a string in quotes but has '\\q'");
  EXPECT_EQ(read("V\\u12\n."), "the pickle's UNICODE at byte 0 needs a text but has \\u12");
  EXPECT_EQ(read("V\\ud800\n."), "the pickle's UNICODE at byte 0 needs a text but has \\ud800");
  EXPECT_EQ(read("V\\U00110000\n."),
            "the pickle's UNICODE at byte 0 needs a text but has \\U00110000");
  EXPECT_EQ(read("\x95\x02" + literal("\0\0\0\0\0\0\0.")),
            "the pickle's FRAME at byte 0 goes beyond the end");
}

TEST_F(Pickle, CutShortAtAnyByteItIsBad) {
  const std::vector<std::string> samples = {
      literal("\x80\x04\x95\x0d\0\0\0\0\0\0\0C\x05\xff\xd8"
              "abc\x94K\x05\x86\x94."),
      literal("\x80\x02}q\0(U\x05imageq\x01T\x03\0\0\0abcU\x05labelq\x02J\xff\xff\xff\xffu."),
      literal("(dp0\nS'image'\np1\nS'a\\x00'\np2\nsV\\u6f22\np3\nL5L\nsF1.5\nI01\ns."),
      literal("\x80\x05]\x94(\x96\x02\0\0\0\0\0\0\0ab\x8c\x01"
              "a\x8d\x01\0\0\0\0\0\0\0bG?\xf8\0\0\0"
              "\0\0\0\x88\x8a\x01\x05NX\x01\0\0\0c\x8e\x01\0\0\0\0\0\0\0d\x85\x85h\0"
              "0e."),
  };
  for (const std::string& sample : samples) {
    ASSERT_EQ(reader_.read(bytes_of(sample), values_).reason(), "");
    for (std::size_t size = 0; size < sample.size(); ++size)
      EXPECT_FALSE(
          reader_.read(bytes_of(std::string_view(sample).substr(0, size)), values_).is_ok())
          << size;
  }
}

TEST_F(Pickle, ValuesAreSharedAndNeverHoldThemselves) {
  EXPECT_EQ(read("]q\x01"
                 "h\x01"
                 "a."),
            "the pickle is refused: a list of 1 holds itself");
  EXPECT_EQ(read("}q\x01)h\x01s."), "the pickle is refused: a dictionary of 1 holds itself");
  EXPECT_EQ(read("]q\x01h\x01\x85"
                 "a."),
            "the pickle is refused: a list of 1 holds itself");
  ASSERT_EQ(read("](K\x01K\x02\x86q\x01h\x01"
                 "e."),
            "[(i1;i2;)(i1;i2;)]");
  EXPECT_EQ(&values_.item(values_.root(), 0), &values_.item(values_.root(), 1));
  // A value that is not part of the result may break the limits.
  EXPECT_EQ(read("N]q\x01h\x01"
                 "a0."),
            "N");
}

TEST_F(Pickle, LevelsAreLimited) {
  EXPECT_EQ(read(")" + std::string(31, '\x85') + "."), std::string(32, '(') + std::string(32, ')'));
  const std::string refused = "the pickle is refused: it is nested in more than 32 levels";
  EXPECT_EQ(read(")" + std::string(32, '\x85') + "."), refused);
  // Through a shared value, whose depth is known by then.
  const std::string shared = ")" + std::string(19, '\x85') + "q\x01";
  EXPECT_EQ(read(shared + "h\x01" + std::string(11, '\x85') + "\x86.").substr(0, 1), "(");
  EXPECT_EQ(read(shared + "h\x01" + std::string(12, '\x85') + "\x86."), refused);
}

TEST_F(Pickle, BombsTakeNoTime) {
  const auto start = std::chrono::steady_clock::now();
  // Each list has the one before it ten times: 10^20 values.
  std::string laughs = "]";
  for (int n = 0; n < 20; ++n) laughs += "q\x01](" + repeated("h\x01", 10) + "e";
  EXPECT_THAT(read(laughs + "."), HasSubstr("refers to the same values so often"));
  // 2^31 values, from two opcodes a level.
  EXPECT_THAT(read(")" + repeated("2\x86", 31) + "."), HasSubstr("so often that it has more than"));
  constexpr std::size_t many = 1'000'000;
  EXPECT_THAT(read(std::string(many, ']') + std::string(many - 1, 'a') + "."),
              HasSubstr("32 levels"));
  EXPECT_THAT(read(std::string(many, '(') + "."), HasSubstr("STOP"));
  EXPECT_THAT(read(std::string(many, '(') + std::string(many, 't') + "."), HasSubstr("32 levels"));
  EXPECT_EQ(read(std::string(many, 'N') + "."), "N");
  for (const char* lengths :
       {"B\xff\xff\xff\xff", "T\xff\xff\xff\x7f", "X\xff\xff\xff\xff", "\x8b\xff\xff\xff\x7f",
        "\x8d\xff\xff\xff\xff\xff\xff\xff\xff", "\x8e\xff\xff\xff\xff\xff\xff\xff\x7f",
        "\x96\xff\xff\xff\xff\xff\xff\xff\x7f"})
    EXPECT_THAT(read(lengths), HasSubstr("bytes, and 0 are left")) << lengths;
  EXPECT_THAT(read("Nr" + four_bytes(0xffffffff) + "."), HasSubstr("more than there can be"));
  EXPECT_THAT(read("Np9223372036854775807\n."), HasSubstr("more than there can be"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST_F(Pickle, AListMayBeLongIfItIsNotShared) {
  constexpr std::size_t many = 3'000'000;
  ASSERT_EQ(reader_.read(bytes_of("](" + std::string(many, 'N') + "e."), values_).reason(), "");
  EXPECT_EQ(values_.size(values_.root()), many);
}

TEST_F(Pickle, AnInputLeavesNothingForTheNext) {
  ASSERT_EQ(read("](S'a\\n'\nq\x01K\x05"
                 "e."),
            "[b610a;i5;]");
  EXPECT_THAT(read("h\x01."), HasSubstr("was not put"));
  EXPECT_THAT(read("(((N"), HasSubstr("without STOP"));
  EXPECT_THAT(read("t."), HasSubstr("no MARK"));
  EXPECT_EQ(read("S'b\\n'\n."), "b620a;");
}

}  // namespace
}  // namespace millrace
