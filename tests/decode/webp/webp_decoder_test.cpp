// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <webp/decode.h>
#include <webp/encode.h>

#include "decode/live_pictures.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::bytes_of;
using testing::cut;
using ::testing::HasSubstr;
using testing::Image;
using testing::noise;
using testing::why_unsound;

Bytes encoded_by_libwebp(const Image& picture, bool lossless) {
  std::uint8_t* written = nullptr;
  const std::size_t length =
      lossless ? WebPEncodeLosslessRGB(picture.pixels.data(), picture.width, picture.height,
                                       3 * picture.width, &written)
               : WebPEncodeRGB(picture.pixels.data(), picture.width, picture.height,
                               3 * picture.width, 80, &written);
  const auto* bytes = reinterpret_cast<const std::byte*>(written);
  Bytes encoded(bytes, bytes + length);
  WebPFree(written);
  return encoded;
}

/// Returns libwebp's own decode of the whole; empty if it fails.
std::vector<std::uint8_t> by_libwebp(const Bytes& encoded) {
  int width = 0;
  int height = 0;
  std::uint8_t* rgb = WebPDecodeRGB(reinterpret_cast<const std::uint8_t*>(encoded.data()),
                                    encoded.size(), &width, &height);
  std::vector<std::uint8_t> pixels;
  if (rgb != nullptr) pixels.assign(rgb, rgb + std::ptrdiff_t{3} * width * height);
  WebPFree(rgb);
  return pixels;
}

TEST(WebpDecoder, EqualsPillow) {
  MILLRACE_LIVE(pictures, "webp");
  EXPECT_EQ(pictures.size(), 62U);
  testing::expect_pillows_pixels(pictures);
}

// All offsets and sizes around a macroblock, where chroma is upsampled and edges are filtered.
TEST(WebpDecoder, RegionsAreThoseOfTheWhole) {
  const auto decoder = make_image_decoder();
  for (const bool lossless : {false, true}) {
    const Bytes encoded = encoded_by_libwebp(noise(75, 53, 3), lossless);
    const std::vector<std::uint8_t> whole = by_libwebp(encoded);
    for (int x = 13; x < 20; ++x)
      for (int y = 29; y < 36; ++y)
        for (const Size size : {Size{1, 1}, Size{2, 3}, Size{15, 16}, Size{75 - x, 53 - y}}) {
          PixelView view;
          ASSERT_TRUE(decoder->open(encoded).is_ok());
          ASSERT_TRUE(decoder->decode({x, y, size.width, size.height}, view).is_ok());
          ASSERT_EQ(bytes_of(view), cut(whole, {75, 53}, {x, y, size.width, size.height}));
        }
  }
}

TEST(WebpDecoder, WhatIsCutShortIsBad) {
  for (const bool lossless : {false, true}) {
    const Bytes encoded = encoded_by_libwebp(noise(40, 30, 3), lossless);
    ASSERT_EQ(why_unsound(encoded), "");
    for (std::size_t length = 12; length < encoded.size(); length += 1 + length / 50) {
      const std::string reason =
          why_unsound({encoded.begin(), encoded.begin() + static_cast<std::ptrdiff_t>(length)});
      EXPECT_EQ(reason, "cut short: " + std::to_string(length) + " of " +
                            std::to_string(encoded.size()) + " bytes");
    }
  }
}

// WebP lacks checksums, so most flipped bits give other pixels; they must equal libwebp's.
TEST(WebpDecoder, DamageIsAsByLibwebp) {
  std::mt19937 draw(5);
  int bad = 0;
  for (const bool lossless : {false, true}) {
    const Bytes encoded = encoded_by_libwebp(noise(60, 44, 3), lossless);
    for (int n = 0; n < 400; ++n) {
      Bytes damaged = encoded;
      damaged[12 + draw() % (damaged.size() - 12)] ^= std::byte{1} << (draw() % 8);
      const std::vector<std::uint8_t> whole = by_libwebp(damaged);
      const auto decoder = make_image_decoder();
      if (!decoder->open(damaged).is_ok()) {
        EXPECT_TRUE(whole.empty());
        ++bad;
        continue;
      }
      const Size size = decoder->header().size();
      const bool sound = decoder->check().is_ok();
      EXPECT_EQ(sound, !whole.empty());
      PixelView view;
      ASSERT_TRUE(decoder->open(damaged).is_ok());
      const bool decoded = decoder->decode({0, 0, size.width, size.height}, view).is_ok();
      EXPECT_EQ(decoded, !whole.empty());
      if (decoded) {
        EXPECT_EQ(bytes_of(view), whole);
      }
      bad += decoded ? 0 : 1;
    }
  }
  EXPECT_GT(bad, 10);
  EXPECT_LT(bad, 790);
}

TEST(WebpDecoder, SaysWhatIsWrong) {
  const Bytes encoded = encoded_by_libwebp(noise(40, 30, 3), false);
  const auto with = [&](std::size_t at, std::string_view text) {
    Bytes changed = encoded;
    std::memcpy(changed.data() + at, text.data(), text.size());
    return why_unsound(changed);
  };
  EXPECT_EQ(with(0, "RIFX"), "it is not a RIFF file");
  using namespace std::string_view_literals;
  EXPECT_EQ(with(4, "\4\0\0\0"sv), "it is said to be 12 bytes long");
  EXPECT_EQ(with(12, "VP9 "), "the header of its pixels is damaged");
  EXPECT_EQ(with(12, "VP8X"), "it ends before its pixels");
  EXPECT_EQ(why_unsound(Bytes(encoded.begin(), encoded.begin() + 12)),
            "cut short: 12 of " + std::to_string(encoded.size()) + " bytes");
}

TEST(WebpDecoder, KeepsToTheLimits) {
  const Image picture{1500, 1000, 3, std::vector<std::uint8_t>(std::size_t{1500} * 1000 * 3, 9)};
  const Bytes plain = encoded_by_libwebp(picture, true);
  EXPECT_EQ(why_unsound(plain), "1500 x 1000 pixels in " + std::to_string(plain.size()) +
                                    " bytes; at most 1000 pixels per byte are decoded "
                                    "(max_pixels_per_byte)");
  EXPECT_EQ(why_unsound(plain, {.max_pixels_per_byte = 1'000'000}), "");
  const Image large{4000, 3000, 3, std::vector<std::uint8_t>(std::size_t{4000} * 3000 * 3, 9)};
  EXPECT_THAT(why_unsound(encoded_by_libwebp(large, true),
                          {.max_pixels_per_byte = 10'000'000, .max_decode_bytes = 40'000'000}),
              HasSubstr("at most 40000000 are taken (max_decode_bytes)"));
}

TEST(WebpInfo, TellsWhatTheFileSays) {
  ImageInfo info;
  ASSERT_TRUE(read_image_info(encoded_by_libwebp(noise(70, 40, 3), false), info).is_ok());
  EXPECT_EQ(info.kind, ImageKind::webp);
  EXPECT_EQ(info.size(), (Size{70, 40}));
  EXPECT_EQ(info.components, 3);
  EXPECT_EQ(info.scan_type, "WebP lossy");
  EXPECT_EQ(info.chroma, "4:2:0");
  EXPECT_EQ(info.header_bytes, 20U);
  ASSERT_TRUE(read_image_info(encoded_by_libwebp(noise(7, 4, 3), true), info).is_ok());
  EXPECT_EQ(info.scan_type, "WebP lossless");
  EXPECT_EQ(info.chroma, std::nullopt);
}

}  // namespace
}  // namespace millrace
