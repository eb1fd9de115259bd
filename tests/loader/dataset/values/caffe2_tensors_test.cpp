// SPDX-License-Identifier: Apache-2.0
//
// Caffe2's TensorProtos, written by hand.
#include "dataset/values/caffe2_tensors.h"

#include <gmock/gmock.h>

#include <chrono>

#include "loader/dataset/values/rendered.h"
#include "loader/dataset/values/wire_text.h"

namespace millrace {
namespace {

using testing::bytes_field;
using testing::bytes_of;
using ::testing::ElementsAre;
using testing::float_bytes;
using testing::float_field;
using testing::integer_field;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::varint;

std::string shape(std::initializer_list<std::int64_t> sizes) {
  std::string fields;
  for (const std::int64_t size : sizes) fields += integer_field(1, size);
  return fields;
}

std::string type(Caffe2Type type) { return integer_field(2, static_cast<std::int64_t>(type)); }

std::string protos(std::initializer_list<std::string> tensors) {
  std::string message;
  for (const std::string& tensor : tensors) message += bytes_field(1, tensor);
  return message;
}

std::string problem_of_message(const std::string& message) {
  Caffe2Tensors tensors;
  return tensors.read(bytes_of(message)).reason();
}

std::string string_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Caffe2Tensors, AnImageAndItsLabels) {
  Caffe2Tensors record;
  const std::string message = protos(
      {shape({1}) + type(Caffe2Type::string) + bytes_field(6, "\xff\xd8"),
       type(Caffe2Type::int32) + integer_field(4, -5),
       shape({1, 2}) + type(Caffe2Type::byte) + bytes_field(5, "ab") + bytes_field(7, "name"),
       shape({2}) + float_field(3, 1.5F) + float_field(3, 2),
       bytes_field(1, varint(2) + varint(2)) + type(Caffe2Type::int64) +
           bytes_field(10, varint(1) + varint(300) + varint(3)) + integer_field(10, -1),
       type(Caffe2Type::string) + shape({2}) + bytes_field(6, "a") + bytes_field(6, "bc"),
       shape({0}) + type(Caffe2Type::boolean)});
  // Twice: the first read must leave nothing behind.
  for (int times = 0; times < 2; ++times) {
    ASSERT_EQ(record.read(bytes_of(message)).reason(), "");
    const auto tensors = record.tensors();
    ASSERT_THAT(tensors, SizeIs(7));
    EXPECT_EQ(string_of(tensors[0].strings[0]), "\xff\xd8");
    EXPECT_THAT(tensors[1].shape, IsEmpty());
    EXPECT_THAT(tensors[1].integers, ElementsAre(-5));
    EXPECT_THAT(tensors[2].shape, ElementsAre(1, 2));
    EXPECT_EQ(string_of(tensors[2].bytes), "ab");
    EXPECT_EQ(tensors[3].type, Caffe2Type::float32);
    EXPECT_THAT(tensors[3].floats, ElementsAre(1.5F, 2.F));
    EXPECT_THAT(tensors[3].integers, IsEmpty());
    EXPECT_THAT(tensors[4].shape, ElementsAre(2, 2));
    EXPECT_THAT(tensors[4].integers, ElementsAre(1, 300, 3, -1));
    EXPECT_EQ(string_of(tensors[5].strings[0]), "a");
    EXPECT_EQ(string_of(tensors[5].strings[1]), "bc");
    EXPECT_THAT(tensors[6].integers, IsEmpty());
  }
  ASSERT_EQ(record.read({}).reason(), "");
  EXPECT_THAT(record.tensors(), IsEmpty());
}

TEST(Caffe2Tensors, WhatIsWrongIsNamed) {
  const std::string good = type(Caffe2Type::int32) + integer_field(4, 1);
  EXPECT_EQ(problem_of_message(protos({""})),
            "tensor 0's float_data has 0 values, and dims is empty, which means one value");
  EXPECT_EQ(problem_of_message(protos({good, shape({2, 3}) + good})),
            "tensor 1's int32_data has 1 values, and dims is 2 x 3");
  EXPECT_EQ(problem_of_message(protos({shape({-1}) + good})), "tensor 0's dims has -1");
  // 2^64 + 1, which overflows unless it is detected.
  EXPECT_EQ(problem_of_message(protos({shape({1LL << 32, 1LL << 32}) + good})),
            "tensor 0's int32_data has 1 values, and dims is 4294967296 x 4294967296");
  EXPECT_EQ(
      problem_of_message(protos({shape({1LL << 62, 1LL << 62, 0}) + type(Caffe2Type::int32)})),
      "tensor 0's int32_data has 0 values, and dims is 4611686018427387904 x "
      "4611686018427387904 x 0");
  for (const auto& [number, name] : {std::pair{0, "UNDEFINED"}, {12, "FLOAT16"}, {13, "DOUBLE"}})
    EXPECT_EQ(problem_of_message(protos({integer_field(2, number)})),
              std::string("tensor 0's data_type is ") + name + ", which is not read");
  EXPECT_EQ(problem_of_message(protos({integer_field(2, 11)})),
            "tensor 0's data_type is 11, which is not read");
  EXPECT_EQ(problem_of_message(protos({type(Caffe2Type::uint8) + integer_field(4, 256)})),
            "tensor 0's int32_data has 256, which is not a valid UINT8");
  EXPECT_EQ(problem_of_message(protos({type(Caffe2Type::boolean) + integer_field(4, -1)})),
            "tensor 0's int32_data has -1, which is not a valid BOOL");
  EXPECT_EQ(problem_of_message(integer_field(1, 1)),
            "tensor 0's protos at byte 0 is a varint, not bytes");
  EXPECT_EQ(problem_of_message(protos({float_field(1, 1)})),
            "tensor 0's dims at byte 0 is 32 bits, not a varint");
  EXPECT_EQ(problem_of_message(protos({bytes_field(4, "\x01\x80")})),
            "tensor 0's int32_data at byte 0 has a packed varint that does not end");
  EXPECT_EQ(problem_of_message(protos({bytes_field(3, "abc")})),
            "tensor 0's float_data at byte 0 has 3 bytes of packed floats, which have 4 each");
  EXPECT_EQ(problem_of_message(protos({integer_field(5, 1)})),
            "tensor 0's byte_data at byte 0 is a varint, not bytes");
  EXPECT_EQ(problem_of_message(protos({"\x0b"})),
            "tensor 0's field 1 at byte 0 has wire type 3 (a group), which is not read");
  EXPECT_EQ(problem_of_message(protos({good}) + "\x0a\x07"),
            "the TensorProtos' field 1 at byte 6 has 7 bytes, and 0 are left");
}

TEST(Caffe2Tensors, CutShortAtAnyByteItIsBadOrHasFewerTensors) {
  const std::string first = protos({shape({1}) + type(Caffe2Type::string) + bytes_field(6, "abc")});
  const std::string message =
      first +
      protos({bytes_field(4, varint(1) + varint(300)) + shape({2}) + type(Caffe2Type::int32)});
  Caffe2Tensors record;
  for (std::size_t size = 1; size < message.size(); ++size) {
    const bool is_ok = record.read(bytes_of(std::string_view(message).substr(0, size))).is_ok();
    EXPECT_EQ(is_ok, size == first.size()) << size;
  }
}

TEST(Caffe2Tensors, ManyTensorsTakeNoTime) {
  const auto start = std::chrono::steady_clock::now();
  std::string message;
  for (int n = 0; n < 100'000; ++n) message += protos({shape({0})});
  Caffe2Tensors record;
  ASSERT_EQ(record.read(bytes_of(message)).reason(), "");
  EXPECT_THAT(record.tensors(), SizeIs(100'000));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

}  // namespace
}  // namespace millrace
