// SPDX-License-Identifier: Apache-2.0
//
// Tests of the arithmetic of conversions against plain computations, and of the reference on the
// host.
#include <gmock/gmock.h>
#include <millrace/conversion_work.h>
#include <millrace/detail/pixel_arithmetic.h>
#include <millrace/detail/plain_conversion.h>
#include <millrace/error.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <thread>
#include <vector>

namespace millrace {
namespace {

/// A 16-bit floating-point format: its number of exponent bits. The mantissa has the rest.
struct Format {
  int exponent_bits;
  int mantissa_bits;
  std::function<std::uint16_t(float)> round;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  std::uint16_t infinity() const {
    return static_cast<std::uint16_t>(((1 << exponent_bits) - 1) << mantissa_bits);
  }
  /// Returns the value of a finite number without its sign.
  double value(std::uint16_t bits) const {
    const int exponent = bits >> mantissa_bits;
    const int mantissa = bits & ((1 << mantissa_bits) - 1);
    return exponent == 0
               ? std::ldexp(mantissa, 1 - bias() - mantissa_bits)
               : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias() - mantissa_bits);
  }
  /// Returns all finite numbers without sign in rising order, then the one that would follow.
  std::vector<double> values() const {
    std::vector<double> all;
    for (std::uint32_t bits = 0; bits <= infinity(); ++bits)
      all.push_back(value(static_cast<std::uint16_t>(bits)));
    return all;
  }
};

const Format half{5, 10, to_float16};
const Format brain{8, 7, to_bfloat16};

/// Returns the index of the nearest number of `values`, found by search. A tie goes to the even
/// index.
std::uint16_t nearest(const std::vector<double>& values, double magnitude) {
  const auto above = std::lower_bound(values.begin(), values.end(), magnitude);
  if (above == values.end()) return static_cast<std::uint16_t>(values.size() - 1);
  const auto place = static_cast<std::size_t>(above - values.begin());
  if (place == 0) return 0;
  const double to_above = *above - magnitude;
  const double to_below = magnitude - values[place - 1];
  if (to_above == to_below) return static_cast<std::uint16_t>(place % 2 == 0 ? place : place - 1);
  return static_cast<std::uint16_t>(to_above < to_below ? place : place - 1);
}

/// Checks one number and its negative. Returns false, with a failure, if one is wrong.
[[nodiscard]] bool rounds_right(const Format& format, const std::vector<double>& values,
                                float number) {
  const std::uint16_t expected = nearest(values, std::abs(static_cast<double>(number)));
  const float magnitude = std::abs(number);
  const bool right =
      format.round(magnitude) == expected && format.round(-magnitude) == (expected | 0x8000U);
  EXPECT_TRUE(right) << number << " became " << format.round(magnitude) << ", the nearest is "
                     << expected;
  return right;
}

void expect_rounds_right(const Format& format) {
  const std::vector<double> values = format.values();
  // Numbers of every exponent.
  for (std::uint64_t bits = 0; bits < 0x7F800000U; bits += 9973)
    if (!rounds_right(format, values, std::bit_cast<float>(static_cast<std::uint32_t>(bits))))
      return;
  // Every tie, and its neighbours.
  for (std::size_t place = 0; place + 1 < values.size(); ++place) {
    const auto middle = static_cast<float>((values[place] + values[place + 1]) / 2);
    for (const float number : {std::nextafter(middle, 0.0F), middle,
                               std::nextafter(middle, std::numeric_limits<float>::infinity())})
      if (std::isfinite(number) && !rounds_right(format, values, number)) return;
  }
  // Each number of the format stays the same.
  for (std::uint32_t bits = 0; bits < format.infinity(); ++bits) {
    const auto number = static_cast<float>(values[bits]);
    ASSERT_EQ(format.round(number), bits);
    ASSERT_EQ(format.round(-number), bits | 0x8000U);
  }
  const float infinite = std::numeric_limits<float>::infinity();
  EXPECT_EQ(format.round(infinite), format.infinity());
  EXPECT_EQ(format.round(-infinite), format.infinity() | 0x8000U);
  for (const std::uint32_t bits :
       {0x7F800001U, 0x7FC00000U, 0x7FFFFFFFU, 0xFF800001U, 0xFFFFFFFFU}) {
    const std::uint16_t rounded = format.round(std::bit_cast<float>(bits));
    EXPECT_GT(rounded & 0x7FFFU, format.infinity())
        << std::hex << bits << " is no number and must stay none";
  }
}

TEST(PixelArithmetic, RoundsToTheNearestFloat16) { expect_rounds_right(half); }
TEST(PixelArithmetic, RoundsToTheNearestBfloat16) { expect_rounds_right(brain); }

// (float32(value) / 255 - mean) / std as numpy computes it in float32 with ImageNet's mean and
// standard deviation, and as float16.
TEST(PixelArithmetic, NormalisesInTheOrderOfTorchvision) {
  struct Golden {
    std::uint8_t value;
    std::array<std::uint32_t, 3> bits;
    std::array<std::uint16_t, 3> half_bits;
  };
  const std::array<Golden, 11> golden{
      {{0, {0xC0078BBD, 0xC0024924, 0xBFE6F809}, {0xC03C, 0xC012, 0xBF38}},
       {1, {0xC006732B, 0xC0012A4F, 0xBFE4BCEA}, {0xC034, 0xC009, 0xBF26}},
       {2, {0xC0055A98, 0xC0000B79, 0xBFE281CC}, {0xC02B, 0xC000, 0xBF14}},
       {17, {0xBFE9D408, 0xBFDE79E7, 0xBFC10B00}, {0xBF4F, 0xBEF4, 0xBE08}},
       {64, {0xBF82CE44, 0xBF6A4EE0, 0xBF3060BA}, {0xBC16, 0xBB52, 0xB983}},
       {113, {0xBE3B31B4, 0xBD6B3455, 0x3E29040F}, {0xB1DA, 0xAB5A, 0x3148}},
       {127, {0x3D6939A6, 0x3E402DE4, 0x3ED170BD}, {0x2B4A, 0x3201, 0x368C}},
       {128, {0x3D97AF32, 0x3E521B48, 0x3EDA5D3C}, {0x2CBD, 0x3291, 0x36D3}},
       {200, {0x3FA74D4F, 0x3FBB9B9C, 0x3FD737EF}, {0x3D3A, 0x3DDD, 0x3EBA}},
       {254, {0x400ED58A, 0x401A4EE0, 0x4027D834}, {0x4077, 0x40D2, 0x413F}},
       {255, {0x400FEE1D, 0x401B6DB7, 0x4028F5C3}, {0x407F, 0x40DB, 0x4148}}}};
  for (const Golden& one : golden)
    for (std::size_t channel = 0; channel < 3; ++channel) {
      const float made = normalised(one.value, Conversion::imagenet_mean[channel],
                                    Conversion::imagenet_std[channel]);
      EXPECT_EQ(std::bit_cast<std::uint32_t>(made), one.bits[channel])
          << int{one.value} << ", channel " << channel;
      EXPECT_EQ(to_float16(made), one.half_bits[channel])
          << int{one.value} << ", channel " << channel;
    }
}

/// Two images of 2 x 3 pixels and two channels. The values encode their place: sample, y, x,
/// channel.
std::vector<std::uint8_t> two_images() {
  std::vector<std::uint8_t> pixels;
  for (int sample = 0; sample < 2; ++sample)
    for (int y = 0; y < 2; ++y)
      for (int x = 0; x < 3; ++x)
        for (int channel = 0; channel < 2; ++channel)
          pixels.push_back(static_cast<std::uint8_t>(sample * 100 + y * 50 + x * 10 + channel));
  return pixels;
}

ConversionWork work_on(const std::vector<std::uint8_t>& pixels, void* destination) {
  return {.source = pixels.data(),
          .destination = destination,
          .samples = 2,
          .height = 2,
          .width = 3,
          .channels = 2,
          .dtype = DType::uint8,
          .layout = ImageLayout::nhwc,
          .mean = {0, 0, 0, 0},
          .std = {1, 1, 1, 1}};
}

TEST(ConvertOnHost, PutsChannelsOutside) {
  const std::vector<std::uint8_t> pixels = two_images();
  std::vector<std::uint8_t> made(pixels.size());
  ConversionWork work = work_on(pixels, made.data());
  work.run_on_host();
  EXPECT_EQ(made, pixels);
  work.layout = ImageLayout::nchw;
  work.run_on_host();
  EXPECT_EQ(made, (std::vector<std::uint8_t>{0,   10,  20,  50,  60,  70,  1,   11,
                                             21,  51,  61,  71,  100, 110, 120, 150,
                                             160, 170, 101, 111, 121, 151, 161, 171}));
}

TEST(ConvertOnHost, FlipsTheImagesThatAreToBeFlipped) {
  const std::vector<std::uint8_t> pixels = two_images();
  std::vector<std::uint8_t> made(pixels.size());
  ConversionWork work = work_on(pixels, made.data());
  const std::array<std::uint8_t, 2> flips{0, 7};
  work.flips = flips.data();
  work.layout = ImageLayout::nchw;
  work.run_on_host();
  EXPECT_EQ(made, (std::vector<std::uint8_t>{0,   10,  20,  50,  60,  70,  1,   11,
                                             21,  51,  61,  71,  120, 110, 100, 170,
                                             160, 150, 121, 111, 101, 171, 161, 151}));
}

TEST(ConvertOnHost, NormalisesEachChannelByItsOwn) {
  const std::vector<std::uint8_t> pixels = two_images();
  std::vector<float> made(pixels.size());
  ConversionWork work = work_on(pixels, made.data());
  work.dtype = DType::float32;
  work.mean = {0.5F, 0.25F, 9, 9};
  work.std = {2, -4, 9, 9};
  work.run_on_host();
  for (std::size_t place = 0; place < pixels.size(); ++place)
    EXPECT_EQ(made[place],
              (static_cast<float>(pixels[place]) / 255 - (place % 2 == 0 ? 0.5F : 0.25F)) /
                  (place % 2 == 0 ? 2 : -4));
  std::vector<std::uint16_t> rounded(pixels.size());
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    work.destination = rounded.data();
    work.dtype = dtype;
    work.run_on_host();
    for (std::size_t place = 0; place < pixels.size(); ++place)
      EXPECT_EQ(rounded[place],
                dtype == DType::float16 ? to_float16(made[place]) : to_bfloat16(made[place]));
  }
}

TEST(ConvertOnHost, RefusesOtherTypes) {
  const std::vector<std::uint8_t> pixels = two_images();
  std::vector<double> made(pixels.size());
  ConversionWork work = work_on(pixels, made.data());
  work.dtype = DType::float64;
  EXPECT_THROW(work.run_on_host(), Error);
}

/// Runs items on threads of its own, several at once.
class TwoThreads final : public HostWorkers {
 public:
  void share(std::size_t items, const std::function<void(std::size_t)>& item) noexcept override {
    ++shared;
    const auto every_second = [&](std::size_t first) {
      for (std::size_t number = first; number < items; number += 2) item(number);
    };
    std::thread other(every_second, 1);
    every_second(0);
    other.join();
  }
  int shared = 0;
};

/// Compares with the plain conversion, over all types, layouts and flips, alone and shared. Also
/// checks that no byte after the batch is written.
void expect_plain_bytes(std::span<const std::uint8_t> pixels, ConversionWork work) {
  const std::vector<std::uint8_t> flips{0, 1, 0, 255, 2};
  ASSERT_LE(work.samples, flips.size());
  TwoThreads threads;
  work.source = pixels.data();
  for (const DType dtype : {DType::uint8, DType::float16, DType::bfloat16, DType::float32})
    for (const ImageLayout layout : {ImageLayout::nhwc, ImageLayout::nchw})
      for (const bool flip : {false, true})
        for (HostWorkers* workers :
             {static_cast<HostWorkers*>(nullptr), static_cast<HostWorkers*>(&threads)}) {
          work.dtype = dtype;
          work.layout = layout;
          work.flips = flip ? flips.data() : nullptr;
          work.workers = workers;
          std::vector<std::uint8_t> expected(pixels.size() * size_of(dtype) + 8, 0xA5);
          std::vector<std::uint8_t> made = expected;
          work.destination = expected.data();
          convert_plainly(work);
          work.destination = made.data();
          work.run_on_host();
          ASSERT_EQ(made, expected)
              << to_string(dtype) << (layout == ImageLayout::nhwc ? " nhwc" : " nchw")
              << (flip ? " flipped" : "") << (workers != nullptr ? " shared" : "");
        }
  const std::size_t elements = work.height * work.width * work.channels;
  EXPECT_EQ(threads.shared, work.samples > 1 && elements >= 65536 ? 16 : 0);
}

TEST(ConvertOnHost, GivesThePlainConversionsBits) {
  struct Case {
    std::size_t samples, height, width;
  };
  for (const Case& one : {Case{5, 1, 1}, Case{3, 5, 7}, Case{1, 31, 2}, Case{3, 224, 300}})
    for (std::size_t channels = 1; channels <= 4; ++channels) {
      std::vector<std::uint8_t> pixels(one.samples * one.height * one.width * channels);
      for (std::size_t place = 0; place < pixels.size(); ++place)
        pixels[place] = static_cast<std::uint8_t>(place * 0x9E3779B97F4A7C15 >> 56U);
      SCOPED_TRACE(::testing::Message() << one.samples << " of " << one.height << " x " << one.width
                                        << " x " << channels);
      expect_plain_bytes(pixels, {.samples = one.samples,
                                  .height = one.height,
                                  .width = one.width,
                                  .channels = channels,
                                  .mean = {0.485F, -0.456F, 0.406F, 7},
                                  .std = {0.229F, 0.224F, -0.225F, 1e-7F}});
      if (::testing::Test::HasFatalFailure()) return;
    }
}

TEST(ConvertOnHost, RefusesOtherNumbersOfChannels) {
  const std::vector<std::uint8_t> pixels = two_images();
  std::vector<float> made(pixels.size());
  ConversionWork work = work_on(pixels, made.data());
  for (const std::size_t channels : {0U, 5U}) {
    work.channels = channels;
    EXPECT_THROW(work.run_on_host(), Error);
  }
}

}  // namespace
}  // namespace millrace
