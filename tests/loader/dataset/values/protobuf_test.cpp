// SPDX-License-Identifier: Apache-2.0
//
// Messages of protobuf on the wire, and Caffe's Datum among them.
#include "dataset/values/protobuf.h"

#include <gmock/gmock.h>

#include <chrono>

#include "dataset/values/caffe_datum.h"
#include "loader/dataset/values/rendered.h"
#include "loader/dataset/values/wire_text.h"

namespace millrace {
namespace {

using testing::bytes_field;
using testing::bytes_of;
using ::testing::ElementsAre;
using testing::float_bytes;
using testing::float_field;
using ::testing::HasSubstr;
using testing::integer_field;
using testing::literal;
using testing::little_endian;
using testing::tag;

/// Returns the fields, followed by the problem.
std::string fields_of(std::string_view message) {
  ProtobufReader reader(bytes_of(message));
  std::string text;
  for (ProtobufField field; reader.next(field);) {
    text += std::to_string(field.number) + "@" + std::to_string(field.offset) + "=";
    text += field.type == WireType::bytes
                ? "b" + testing::hexadecimal(
                            {reinterpret_cast<const char*>(field.bytes.data()), field.bytes.size()})
                : std::to_string(field.integer);
    text += " ";
  }
  return text + reader.problem();
}

TEST(Protobuf, EachWireType) {
  EXPECT_EQ(fields_of(""), "");
  EXPECT_EQ(fields_of(literal("\x08\x96\x01\x12\x07testing")), "1@0=150 2@3=b74657374696e67 ");
  EXPECT_EQ(fields_of(tag(3, 1) + little_endian(1ULL << 63, 8) + tag(4, 5) + little_endian(7, 4)),
            "3@0=9223372036854775808 4@9=7 ");
  EXPECT_EQ(fields_of(integer_field((1U << 29) - 1, -1)), "536870911@0=18446744073709551615 ");
  EXPECT_EQ(fields_of("\x08" + std::string(9, '\xff') + "\x7f"), "1@0=18446744073709551615 ")
      << "bits beyond 64";
  EXPECT_EQ(fields_of(literal("\x08\x80\x80\0")), "1@0=0 ") << "longer than it need be";
}

TEST(Protobuf, DamageIsNamedWithItsPlace) {
  EXPECT_EQ(fields_of("\x80"), "byte 0 has a tag that does not end");
  EXPECT_EQ(fields_of(literal("\0\x01")), "byte 0 has the invalid field number 0");
  EXPECT_EQ(fields_of(testing::varint(1ULL << 32) + "\x01"),
            "byte 0 has the invalid field number 536870912");
  EXPECT_EQ(fields_of("\x08\x01\x10"), "1@0=1 field 2 at byte 2 has a varint that does not end");
  EXPECT_EQ(fields_of("\x08" + std::string(11, '\xff')),
            "field 1 at byte 0 has a varint that does not end");
  EXPECT_EQ(fields_of("\x09" + std::string(7, 'a')), "field 1 at byte 0 is cut short");
  EXPECT_EQ(fields_of("\x0d" + std::string(3, 'a')), "field 1 at byte 0 is cut short");
  EXPECT_EQ(fields_of("\x0a\x03"
                      "ab"),
            "field 1 at byte 0 has 3 bytes, and 2 are left");
  EXPECT_EQ(fields_of("\x0a" + std::string(9, '\xff') + "\x01"),
            "field 1 at byte 0 has 18446744073709551615 bytes, and 0 are left");
  EXPECT_EQ(fields_of("\x0b\x0c"),
            "field 1 at byte 0 has wire type 3 (a group), which is not read");
  EXPECT_EQ(fields_of("\x0c"), "field 1 at byte 0 has wire type 4 (a group), which is not read");
  EXPECT_EQ(fields_of("\x0e"), "field 1 at byte 0 has wire type 6, which is invalid");
}

std::string sizes(std::int64_t channels, std::int64_t height, std::int64_t width) {
  return integer_field(1, channels) + integer_field(2, height) + integer_field(3, width);
}

std::string datum_problem(const std::string& message) {
  CaffeDatum datum;
  return datum.read(bytes_of(message)).reason();
}

TEST(CaffeDatum, RawPixelsAndAnImage) {
  CaffeDatum datum;
  const std::string raw = sizes(3, 1, 2) + bytes_field(4, "abcdef") + integer_field(5, -7);
  ASSERT_EQ(datum.read(bytes_of(raw)).reason(), "");
  EXPECT_EQ(datum.channels, 3);
  EXPECT_EQ(datum.height, 1);
  EXPECT_EQ(datum.width, 2);
  EXPECT_EQ(datum.label, -7);
  EXPECT_FALSE(datum.encoded);
  EXPECT_EQ(datum.data.data(), bytes_of(raw).data() + 8) << "a view";
  EXPECT_EQ(datum.data.size(), 6U);
  const std::string image = bytes_field(4, "\xff\xd8") + integer_field(7, 1);
  ASSERT_EQ(datum.read(bytes_of(image)).reason(), "");
  EXPECT_TRUE(datum.encoded);
  EXPECT_EQ(datum.label, std::nullopt) << "nothing is left of the one before";
  EXPECT_EQ(datum.channels, 0);
  EXPECT_EQ(datum.data.size(), 2U);
}

TEST(CaffeDatum, FloatsPackedAndNot) {
  const std::string packed = bytes_field(6, float_bytes(1.5F) + float_bytes(-2));
  CaffeDatum datum;
  for (const std::string& floats :
       {float_field(6, 1.5F) + float_field(6, -2) + float_field(6, 1.5F) + float_field(6, -2),
        packed + packed, float_field(6, 1.5F) + float_field(6, -2) + packed}) {
    ASSERT_EQ(datum.read(bytes_of(floats + sizes(2, 2, 1))).reason(), "");
    EXPECT_THAT(datum.floats, ElementsAre(1.5F, -2.F, 1.5F, -2.F));
  }
}

TEST(CaffeDatum, TheLastFieldCountsAndOthersArePassedOver) {
  CaffeDatum datum;
  const std::string twice = sizes(9, 9, 9) + bytes_field(4, "zz") + integer_field(5, 1) +
                            bytes_field(99, "new") + sizes(1, 1, 3) + bytes_field(4, "abc") +
                            integer_field(5, 2);
  ASSERT_EQ(datum.read(bytes_of(twice)).reason(), "");
  EXPECT_EQ(datum.label, 2);
  EXPECT_EQ(datum.data.size(), 3U);
}

TEST(CaffeDatum, WhatIsWrongIsNamed) {
  const std::string data = bytes_field(4, "abc");
  EXPECT_EQ(datum_problem(""), "the Datum's data and float_data are both missing");
  EXPECT_EQ(datum_problem(data + float_field(6, 1)),
            "the Datum's data and float_data are both there");
  EXPECT_EQ(datum_problem(float_field(6, 1) + integer_field(7, 1)),
            "the Datum's float_data is there, but it is encoded");
  EXPECT_EQ(datum_problem(data), "the Datum's channels is missing or 0, and it is not encoded");
  EXPECT_EQ(datum_problem(data + sizes(1, 3, 0)),
            "the Datum's width is missing or 0, and it is not encoded");
  EXPECT_EQ(datum_problem(data + sizes(1, -3, 1)), "the Datum's height is -3");
  EXPECT_EQ(datum_problem(data + sizes(1, 1, 4)),
            "the Datum's data has 3 values, and channels x height x width is 1 x 1 x 4");
  EXPECT_EQ(datum_problem(float_field(6, 1) + sizes(1, 1, 4)),
            "the Datum's float_data has 1 values, and channels x height x width is 1 x 1 x 4");
  // 2^64 + 3, which overflows unless it is detected.
  EXPECT_EQ(datum_problem(data + sizes(1 << 30, 1 << 30, 16)),
            "the Datum's data has 3 values, and channels x height x width is 1073741824 x "
            "1073741824 x 16");
  EXPECT_EQ(datum_problem(bytes_field(1, "x")),
            "the Datum's channels at byte 0 is bytes, not a varint");
  EXPECT_EQ(datum_problem(integer_field(4, 1)),
            "the Datum's data at byte 0 is a varint, not bytes");
  EXPECT_EQ(datum_problem(data + float_field(5, 1)),
            "the Datum's label at byte 5 is 32 bits, not a varint");
  EXPECT_EQ(datum_problem(integer_field(6, 1)),
            "the Datum's float_data at byte 0 is a varint, not 32 bits");
  EXPECT_EQ(datum_problem(bytes_field(6, "abcde")),
            "the Datum's float_data at byte 0 has 5 bytes of packed floats, which have 4 each");
  EXPECT_EQ(datum_problem(bytes_field(7, "x")),
            "the Datum's encoded at byte 0 is bytes, not a varint");
  EXPECT_EQ(datum_problem(data + "\x22\x05"),
            "the Datum's field 4 at byte 5 has 5 bytes, and 0 are left");
}

/// The label is a varint: int32 takes its low 32 bits, as protobuf's own readers do.
TEST(CaffeDatum, LabelsHave32Bits) {
  CaffeDatum datum;
  const std::string message = bytes_field(4, "x") + integer_field(7, 1);
  for (const auto& [written, read] : {std::pair{std::int64_t{-1}, -1},
                                      {0xffffffffLL, -1},
                                      {1LL << 40, 0},
                                      {0x7fffffff, 0x7fffffff}}) {
    ASSERT_EQ(datum.read(bytes_of(message + integer_field(5, written))).reason(), "");
    EXPECT_EQ(datum.label, read);
  }
}

TEST(CaffeDatum, CutShortAtAnyByteItIsBadOrLacksAField) {
  CaffeDatum datum;
  const std::string message =
      sizes(1, 1, 2) + integer_field(5, 300) + float_field(6, 1) + bytes_field(6, float_bytes(2));
  ASSERT_EQ(datum.read(bytes_of(message)).reason(), "");
  for (std::size_t size = 0; size < message.size(); ++size)
    EXPECT_FALSE(datum.read(bytes_of(std::string_view(message).substr(0, size))).is_ok()) << size;
}

}  // namespace
}  // namespace millrace
