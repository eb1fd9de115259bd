// SPDX-License-Identifier: Apache-2.0
//
// The cost of a few bytes: every limit has its message, and large pictures keep within all limits.
#include <gmock/gmock.h>

#include <cstdlib>

#include "jpeg/decoder/jpeg_decoder.h"
#include "support/jpeg_bombs.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::Claim;
using testing::encode;
using testing::Encoding;
using testing::hollow_jpeg;
using testing::Image;

constexpr std::uint64_t megabyte = 1 << 20;

std::shared_ptr<DecodeBudget> budget_of(const DecodeLimits& limits) {
  return std::make_shared<DecodeBudget>(limits);
}

/// Returns why an image is bad, by all three functions that refuse it; empty if it is not.
std::string reason_of(const Bytes& encoded, const DecodeLimits& limits = {}) {
  JpegDecoder decoder(budget_of(limits));
  const std::string opened = decoder.open(encoded).reason();
  if (!opened.empty()) return opened;
  const std::string checked = decoder.check().reason();
  EXPECT_TRUE(decoder.open(encoded).is_ok());
  PixelView view;
  EXPECT_EQ(decoder.decode({0, 0, 1, 1}, view).reason(), checked);
  return checked;
}

TEST(JpegLimits, PixelsPerByte) {
  const Bytes hollow = hollow_jpeg({});
  EXPECT_LT(hollow.size(), 221U);
  EXPECT_EQ(reason_of(hollow),
            "10000 x 10000 pixels in " + std::to_string(hollow.size()) +
                " bytes; at most 1000 pixels per byte are decoded (max_pixels_per_byte)");
  const Bytes small = hollow_jpeg({.width = 106, .height = 1000});
  ASSERT_EQ(small.size(), 106U);
  EXPECT_EQ(reason_of(small), "");
  EXPECT_EQ(reason_of(hollow_jpeg({.width = 107, .height = 1000})),
            "107 x 1000 pixels in 106 bytes; at most 1000 pixels per byte are decoded "
            "(max_pixels_per_byte)");
  EXPECT_EQ(reason_of(hollow_jpeg({.width = 107, .height = 1000}), {.max_pixels_per_byte = 1010}),
            "");
}

TEST(JpegLimits, ScansTimesPixels) {
  const Bytes bomb = hollow_jpeg({.scans = 199});
  EXPECT_LT(bomb.size(), 2100U);
  EXPECT_NE(reason_of(bomb), "");
  EXPECT_EQ(reason_of(hollow_jpeg({.width = 1000, .height = 1000, .scans = 21}),
                      {.max_pixels_per_byte = 10'000, .max_scan_pixels = 20'999'999}),
            "21 scans or more of 1000 x 1000 pixels; at most 20999999 pixels of all scans are "
            "decoded (max_scan_pixels)");
  EXPECT_EQ(reason_of(hollow_jpeg({.width = 1000, .height = 1000, .scans = 21}),
                      {.max_pixels_per_byte = 10'000, .max_scan_pixels = 21'000'000}),
            "");
  // The limit applies to one scan, too.
  EXPECT_EQ(reason_of(encode(testing::noise(30, 40, 1), {}), {.max_scan_pixels = 1199}),
            "1 scans or more of 30 x 40 pixels; at most 1199 pixels of all scans are decoded "
            "(max_scan_pixels)");
}

TEST(JpegLimits, MemoryOfOneImage) {
  EXPECT_EQ(reason_of(hollow_jpeg({.padding = 100'000})),
            "10000 x 10000 pixels take 900000000 bytes of memory to decode; at most 536870912 are "
            "taken (max_decode_bytes)");
  const Claim claim{.width = 3000, .height = 2400, .padding = 10'000};
  const std::uint64_t needed = 9 * 3000 * 2400;
  EXPECT_EQ(reason_of(hollow_jpeg(claim), {.max_decode_bytes = needed}), "");
  EXPECT_EQ(reason_of(hollow_jpeg(claim), {.max_decode_bytes = needed - 1}),
            "3000 x 2400 pixels take 64800000 bytes of memory to decode; at most 64799999 are "
            "taken (max_decode_bytes)");
  // The memory of small images does not count.
  EXPECT_EQ(reason_of(encode(testing::noise(30, 40, 1), {}), {.max_decode_bytes = 1}), "");
}

/// Expects that another decoder of the budget gets all of it now. Otherwise it waits forever.
void expect_all_free(const std::shared_ptr<DecodeBudget>& budget) {
  const DecodeBudget::Reservation all = budget->take(budget->limits().max_decode_bytes);
}

TEST(JpegLimits, LargeImagesGiveTheirMemoryBack) {
  const auto budget = budget_of({.max_decode_bytes = 100 * megabyte});
  const Bytes large = hollow_jpeg({.width = 3000, .height = 2400, .padding = 10'000});
  Bytes damaged = large;
  damaged.resize(damaged.size() - 2);  // without its end
  JpegDecoder decoder(budget);
  PixelView view;
  const Region whole{0, 0, 3000, 2400};

  ASSERT_TRUE(decoder.open(large).is_ok());
  ASSERT_TRUE(decoder.decode(whole, view).is_ok());
  decoder.close();
  expect_all_free(budget);

  ASSERT_TRUE(decoder.open(large).is_ok());
  ASSERT_TRUE(decoder.check().is_ok());
  expect_all_free(budget);

  ASSERT_TRUE(decoder.open(damaged).is_ok());
  ASSERT_FALSE(decoder.decode(whole, view).is_ok());
  expect_all_free(budget);

  ASSERT_TRUE(decoder.open(large).is_ok());
  ASSERT_TRUE(decoder.decode(whole, view).is_ok());
  ASSERT_FALSE(decoder.open(Bytes(2)).is_ok());
  expect_all_free(budget);

  {
    JpegDecoder another(budget);
    ASSERT_TRUE(another.open(large).is_ok());
    ASSERT_TRUE(another.decode(whole, view).is_ok());
  }
  expect_all_free(budget);
}

TEST(JpegLimits, TheEnvironmentSetsNone) {
  ASSERT_EQ(setenv("JPEGMEM", "1", 1), 0);
  const std::string reason =
      reason_of(hollow_jpeg({.width = 1000, .height = 1000, .padding = 10'000}));
  ASSERT_EQ(unsetenv("JPEGMEM"), 0);
  EXPECT_EQ(reason, "");
}

// White takes the fewest bytes among the images that Huffman's code can hold completely.
TEST(JpegLimits, LargePicturesKeepWithinThem) {
  const Image white{8000, 6000, 1, std::vector<std::uint8_t>(8000 * 6000, 255)};
  const Bytes baseline = encode(white, {.optimised = true});
  EXPECT_LT(baseline.size(), 190'000U);
  EXPECT_EQ(reason_of(baseline), "");
  const Bytes progressive = encode(white, {.scans = Encoding::Scans::progressive});
  EXPECT_LT(progressive.size(), 380'000U);
  EXPECT_EQ(reason_of(progressive), "");
  // As 10 scans of 50 megapixels, with colour at full resolution.
  EXPECT_EQ(reason_of(hollow_jpeg({.width = 8000, .height = 6250, .scans = 10, .padding = 50'000})),
            "");
}

}  // namespace
}  // namespace millrace
