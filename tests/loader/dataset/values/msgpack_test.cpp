// SPDX-License-Identifier: Apache-2.0
//
// MessagePack made by hand, after the specification's table of formats.
#include "dataset/values/msgpack.h"

#include <gmock/gmock.h>

#include <chrono>

#include "loader/dataset/values/rendered.h"

namespace millrace {
namespace {

using testing::bytes_of;
using ::testing::HasSubstr;
using testing::literal;
using testing::rendered;

/// Returns the value as text, or the reason if it is bad.
std::string read(std::string_view bytes) {
  Values values;
  const Status status = read_msgpack(bytes_of(bytes), values);
  return status.is_ok() ? rendered(values) : status.reason();
}

std::string filled(const std::string& head, std::size_t size, char with = 'a') {
  return head + std::string(size, with);
}

TEST(Msgpack, EachFormat) {
  EXPECT_EQ(read("\xc0"), "N");
  EXPECT_EQ(read("\xc2"), "F");
  EXPECT_EQ(read("\xc3"), "T");
  EXPECT_EQ(read(literal("\0")), "i0;");
  EXPECT_EQ(read("\x7f"), "i127;");
  EXPECT_EQ(read("\xe0"), "i-32;");
  EXPECT_EQ(read("\xff"), "i-1;");
  EXPECT_EQ(read("\xcc\xff"), "i255;");
  EXPECT_EQ(read("\xcd\xff\xfe"), "i65534;");
  EXPECT_EQ(read("\xce\xff\xff\xff\xfe"), "i4294967294;");
  EXPECT_EQ(read("\xcf\x7f\xff\xff\xff\xff\xff\xff\xff"), "i9223372036854775807;");
  EXPECT_EQ(read("\xd0\x80"), "i-128;");
  EXPECT_EQ(read("\xd1\xff\xfe"), "i-2;");
  EXPECT_EQ(read(literal("\xd2\x80\0\0\0")), "i-2147483648;");
  EXPECT_EQ(read(literal("\xd3\x80\0\0\0\0\0\0\0")), "i-9223372036854775808;");
  EXPECT_EQ(read(literal("\xca\x3f\xc0\0\0")), "f3ff8000000000000;");
  EXPECT_EQ(read(literal("\xcb\x3f\xf8\0\0\0\0\0\0")), "f3ff8000000000000;");
  EXPECT_EQ(read("\xa3"
                 "abc"),
            "s616263;");
  EXPECT_EQ(read("\xa2\xff\xd8"), "bffd8;") << "no UTF-8";
  const std::string as = testing::hexadecimal(filled("", 32)) + ";";
  EXPECT_EQ(read(filled("\xd9\x20", 32)), "s" + as);
  EXPECT_EQ(read(filled(literal("\xda\0\x20"), 32)), "s" + as);
  EXPECT_EQ(read(filled(literal("\xdb\0\0\0\x20"), 32)), "s" + as);
  EXPECT_EQ(read(filled("\xc4\x20", 32)), "b" + as);
  EXPECT_EQ(read(filled(literal("\xc5\0\x20"), 32)), "b" + as);
  EXPECT_EQ(read(filled(literal("\xc6\0\0\0\x20"), 32)), "b" + as);
  EXPECT_EQ(read("\x90"), "[]");
  EXPECT_EQ(read("\x93\x01\x92\x02\x90\x03"), "[i1;[i2;[]]i3;]");
  EXPECT_EQ(read(literal("\xdc\0\x01\xc0")), "[N]");
  EXPECT_EQ(read(literal("\xdd\0\0\0\x01\xc0")), "[N]");
  EXPECT_EQ(read("\x80"), "{}");
  EXPECT_EQ(read("\x82\xa1k\x81\x01\x80\x02\x91\xc0"), "{s6b;{i1;{}}i2;[N]}");
  EXPECT_EQ(read(literal("\xde\0\x01\x01\xc0")), "{i1;N}");
  EXPECT_EQ(read(literal("\xdf\0\0\0\x01\x01\xc0")), "{i1;N}");
}

TEST(Msgpack, WhatIsNotReadIsNamedWithItsPlace) {
  EXPECT_EQ(read(""), "the MessagePack value has at byte 0 its end, where a value is missing");
  EXPECT_EQ(read("\x91\xc1"),
            "the MessagePack value has at byte 1 the type 0xc1, which is never used");
  EXPECT_EQ(read(literal("\xcf\x80\0\0\0\0\0\0\0")),
            "the MessagePack value has at byte 0 the integer 9223372036854775808, which is beyond "
            "int64");
  EXPECT_EQ(read("\xc0\xc0"), "the MessagePack value has 1 bytes behind it");
  EXPECT_EQ(read("\xc4\x03"
                 "ab"),
            "the MessagePack value has at byte 0 3 bytes, and 2 are left");
  EXPECT_EQ(read(literal("\x92\x01\xd6\xff\0\0\0\0")),
            "the MessagePack value has at byte 2 ext type -1 (a timestamp), which is not read");
  for (const std::string& ext :
       {literal("\xd4\x05"
                "a"),
        literal("\xd5\x05"
                "ab"),
        filled("\xd6\x05", 4), filled("\xd7\x05", 8), filled("\xd8\x05", 16),
        filled("\xc7\x03\x05", 3), filled(literal("\xc8\0\x03\x05"), 3),
        filled(literal("\xc9\0\0\0\x03\x05"), 3)})
    EXPECT_EQ(read(ext), "the MessagePack value has at byte 0 ext type 5, which is not read");
}

TEST(Msgpack, ArraysOfMsgpackNumpyAreNamed) {
  const std::string numpy = literal(
      "\x85\xc4\x02nd\xc3\xc4\x04type\xa3<f4\xc4\x04kind\xc4\0\xc4\x05shape\x91\x01\xc4\x04"
      "data\xc4\x04"
      "abcd");
  EXPECT_EQ(read("\x92" + numpy + "\x05"),
            "the MessagePack value has at byte 6 an array or number of msgpack-numpy, which is not "
            "read");
  EXPECT_EQ(read("\x81\xa2nd\xc3"), "{s6e64;T}") << "a map that is none";
  EXPECT_EQ(read("\x83\xa1x\xc3\xa2nd\xc3\xa1y\xc3"), "{s78;Ts6e64;Ts79;T}");
}

TEST(Msgpack, CutShortAtAnyByteItIsBad) {
  for (const std::string& sample : {literal("\x92\xc4\x05\xff\xd8"
                                            "abc\xcd\x01\x02"),
                                    literal("\x82\xa5image\xc5\0\x03"
                                            "abc\xa5label\xd2\xff\xff\xff\xfe"),
                                    literal("\xdc\0\x03\xcb\x3f\xf8\0\0\0\0\0\0\xd9\x02"
                                            "ab\xde\0\x01\x05\x90")}) {
    Values values;
    ASSERT_EQ(read_msgpack(bytes_of(sample), values).reason(), "");
    for (std::size_t size = 0; size < sample.size(); ++size)
      EXPECT_FALSE(read_msgpack(bytes_of(std::string_view(sample).substr(0, size)), values).is_ok())
          << size;
  }
}

TEST(Msgpack, BombsTakeNoTime) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(read(std::string(31, '\x91') + "\x90"), std::string(32, '[') + std::string(32, ']'));
  EXPECT_THAT(read(std::string(32, '\x91') + "\x90"), HasSubstr("more than 32 levels"));
  EXPECT_THAT(read(std::string(32, '\x91') + "\xc0").substr(0, 2), "[[");
  EXPECT_THAT(read(std::string(33, '\x91') + "\xc0"), HasSubstr("more than 32 levels"));
  EXPECT_THAT(read(std::string(1'000'000, '\x91')), HasSubstr("more than 32 levels"));
  EXPECT_THAT(read(std::string(1'000'000, '\x81')), HasSubstr("more than 32 levels"));
  EXPECT_THAT(read("\xdd\xff\xff\xff\xff\xc0"), HasSubstr("an array of 4294967295 in the last 1"));
  EXPECT_THAT(read("\xdf\xff\xff\xff\xff\xc0"), HasSubstr("a map of 4294967295 in the last 1"));
  EXPECT_THAT(read("\xdb\xff\xff\xff\xff\xc0"), HasSubstr("a str of 4294967295 bytes, and 1"));
  EXPECT_THAT(read("\xc6\xff\xff\xff\xff\xc0"), HasSubstr("4294967295 bytes, and 1 are left"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

}  // namespace
}  // namespace millrace
