// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/detail/pixel_arithmetic.h>
#include <millrace/tensor.h>

#include <array>
#include <cmath>
#include <limits>

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename Function>
ErrorCode code_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "no error was thrown";
  return ErrorCode::internal;
}

TEST(DTypes, HaveSizesAndNames) {
  EXPECT_EQ(size_of(DType::uint8), 1U);
  EXPECT_EQ(size_of(DType::int32), 4U);
  EXPECT_EQ(size_of(DType::uint32), 4U);
  EXPECT_EQ(size_of(DType::int64), 8U);
  EXPECT_EQ(size_of(DType::uint64), 8U);
  EXPECT_EQ(size_of(DType::float32), 4U);
  EXPECT_EQ(size_of(DType::float64), 8U);
  EXPECT_STREQ(to_string(DType::float32), "float32");
  EXPECT_STREQ(to_string(DType::uint8), "uint8");
}

TEST(DTypes, FollowFromTheCppType) {
  EXPECT_EQ(DTypeOf<std::uint8_t>::value, DType::uint8);
  EXPECT_EQ(DTypeOf<std::int64_t>::value, DType::int64);
  EXPECT_EQ(DTypeOf<double>::value, DType::float64);
  EXPECT_EQ(size_of(DTypeOf<float>::value), sizeof(float));
}

TEST(DTypes, OfSmallIntegersAndBoolAreFields) {
  const auto check = [](auto value, DType dtype, const char* name) {
    using T = decltype(value);
    EXPECT_EQ(DTypeOf<T>::value, dtype);
    EXPECT_EQ(size_of(dtype), sizeof(T));
    EXPECT_STREQ(to_string(dtype), name);
    std::array<T, 2> memory{T{}, value};
    EXPECT_EQ((Tensor{memory.data(), dtype, Shape{2}}.as<T>()[1]), value);
  };
  check(std::int8_t{-128}, DType::int8, "int8");
  check(std::int16_t{-32768}, DType::int16, "int16");
  check(std::uint16_t{65535}, DType::uint16, "uint16");
  check(true, DType::boolean, "bool");
}

TEST(DTypes, OfSixteenBitsAreReadAsNumbers) {
  std::array<std::uint16_t, 8> bits{0x0000, 0x8000, 0x0001, 0x03FF, 0x0400, 0xC03C, 0x7BFF, 0xFC00};
  const auto halves = Tensor{bits.data(), DType::float16, Shape{8}}.as<Float16>();
  const std::array<float, 8> expected{0,        -0.0F,      0x1p-24F, 0x3FFp-24F,
                                      0x1p-14F, -2.1171875, 65504,    -INFINITY};
  for (std::size_t place = 0; place < bits.size(); ++place) {
    EXPECT_EQ(halves[place], expected[place]) << std::hex << bits[place];
    EXPECT_EQ(std::signbit(halves[place]), std::signbit(expected[place]))
        << std::hex << bits[place];
  }
  const auto brains = Tensor{bits.data(), DType::bfloat16, Shape{8}}.as<Bfloat16>();
  EXPECT_EQ(brains[5], -2.9375F);
  EXPECT_EQ(brains[2], 0x1p-133F);
  EXPECT_THROW((void)(Tensor{bits.data(), DType::float16, Shape{8}}.as<Bfloat16>()), Error);
}

// Converting each value to a float and back gives the same value.
TEST(DTypes, OfSixteenBitsLoseNothing) {
  for (std::uint32_t number = 0; number < 0x10000; ++number) {
    const auto bits = static_cast<std::uint16_t>(number);
    const float half = Float16{bits};
    const float brain = Bfloat16{bits};
    if ((bits & 0x7FFFU) > 0x7C00) {
      ASSERT_TRUE(std::isnan(half)) << std::hex << bits;
    } else {
      ASSERT_EQ(to_float16(half), bits);
    }
    if ((bits & 0x7FFFU) > 0x7F80) {
      ASSERT_TRUE(std::isnan(brain)) << std::hex << bits;
    } else {
      ASSERT_EQ(to_bfloat16(brain), bits);
    }
  }
}

TEST(Shapes, AScalarHasOneElement) {
  const Shape scalar;
  EXPECT_EQ(scalar.rank(), 0U);
  EXPECT_EQ(scalar.elements(), 1U);
  EXPECT_EQ(scalar.to_string(), "[]");
  EXPECT_EQ(scalar, Shape({}));
}

TEST(Shapes, CountAndNameTheirExtents) {
  const Shape shape{64, 224, 224, 3};
  EXPECT_EQ(shape.rank(), 4U);
  EXPECT_EQ(shape[0], 64U);
  EXPECT_EQ(shape[3], 3U);
  EXPECT_EQ(shape.elements(), std::size_t{64} * 224 * 224 * 3);
  EXPECT_EQ(shape.to_string(), "[64, 224, 224, 3]");
  EXPECT_THAT(shape.extents(), ElementsAre(64, 224, 224, 3));
}

TEST(Shapes, GetABatchExtentOutermost) {
  EXPECT_EQ(Shape({224, 224, 3}).with_outer(8), Shape({8, 224, 224, 3}));
  EXPECT_EQ(Shape().with_outer(5), Shape({5}));
  EXPECT_FALSE(Shape({2, 3}) == Shape({3, 2}));
  EXPECT_FALSE(Shape({2}) == Shape({2, 1}));
}

TEST(Shapes, RefuseMoreExtentsThanThereIsRoomFor) {
  EXPECT_EQ(Shape({1, 2, 3, 4, 5, 6}).elements(), 720U);
  EXPECT_EQ(code_of([] { Shape({1, 2, 3, 4, 5, 6, 7}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([] {
              (void)Shape({1, 2, 3, 4, 5, 6}).with_outer(2);
            }),
            ErrorCode::invalid_argument);
}

TEST(Tensors, ViewTheirElements) {
  std::array<float, 6> memory{0, 1, 2, 3, 4, 5};
  const Tensor tensor{memory.data(), DType::float32, Shape{2, 3}};
  EXPECT_EQ(tensor.bytes(), 24U);
  const auto elements = tensor.as<float>();
  ASSERT_EQ(elements.size(), 6U);
  EXPECT_EQ(elements.data(), memory.data());
  elements[4] = 9;
  EXPECT_EQ(memory[4], 9);
}

TEST(Tensors, AreNotReadAsAnotherType) {
  std::array<std::uint32_t, 2> memory{};
  const Tensor tensor{memory.data(), DType::uint32, Shape{2}};
  EXPECT_EQ(code_of([&] { (void)tensor.as<float>(); }), ErrorCode::invalid_argument);
  try {
    (void)tensor.as<std::int32_t>();
    FAIL() << "uint32 was handed out as int32";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("uint32"));
    EXPECT_THAT(error.what(), HasSubstr("int32"));
  }
}

}  // namespace
}  // namespace millrace
