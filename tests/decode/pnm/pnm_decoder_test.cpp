// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/image_decoder.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "decode/live_pictures.h"

namespace millrace {
namespace {

using namespace std::string_view_literals;
using testing::Bytes;

using ::testing::HasSubstr;

Bytes pnm(std::string_view header, std::size_t pixel_bytes, unsigned seed = 1) {
  Bytes bytes(header.size() + pixel_bytes);
  std::memcpy(bytes.data(), header.data(), header.size());
  for (std::size_t n = 0; n < pixel_bytes; ++n)
    bytes[header.size() + n] = static_cast<std::byte>((n * 37 + seed) >> (n % 3));
  return bytes;
}

std::string open_reason(const Bytes& encoded) {
  const std::string reason = make_image_decoder()->open(encoded).reason();
  ImageInfo info;
  EXPECT_EQ(read_image_info(encoded, info).reason(), reason);
  return reason;
}

/// Returns the RGB values of a region, in rows without gaps.
std::vector<std::uint8_t> decoded(const Bytes& encoded, const Region& region) {
  const auto decoder = make_image_decoder();
  EXPECT_TRUE(decoder->open(encoded).is_ok());
  PixelView view;
  const Status status = decoder->decode(region, view);
  EXPECT_TRUE(status.is_ok()) << status.reason();
  return testing::bytes_of(view);
}

TEST(PnmDecoder, EqualsPillow) {
  MILLRACE_LIVE(pictures, "pnm");
  EXPECT_EQ(pictures.size(), 16U);
  testing::expect_pillows_pixels(pictures);
}

TEST(PnmDecoder, ShowsRegionsOfGreyAndColour) {
  const std::string header = "P6 7 5 255\n";
  const Bytes colour = pnm(header, 105);
  const Bytes grey = pnm("P5\n7\t5\r255 ", 35);
  for (const Region& region : {Region{0, 0, 7, 5}, Region{2, 1, 4, 3}, Region{6, 4, 1, 1}}) {
    const auto rgb = decoded(colour, region);
    const auto luma = decoded(grey, region);
    std::size_t at = 0;
    for (int y = region.y; y < region.y + region.height; ++y)
      for (int x = region.x; x < region.x + region.width; ++x)
        for (int channel = 0; channel < 3; ++channel, ++at) {
          const auto pixel = static_cast<std::size_t>(y * 7 + x);
          ASSERT_EQ(rgb[at], std::to_integer<int>(
                                 colour[11 + 3 * pixel + static_cast<std::size_t>(channel)]));
          ASSERT_EQ(luma[at], std::to_integer<int>(grey[11 + pixel]));
        }
  }
}

TEST(PnmDecoder, CommentsEndWithTheirLine) {
  for (const std::string_view header :
       {"P5#a\n3 2 255\n"sv, "P5 # 9 9\n# 1\r 3#x\n2\n255\n"sv, "P5 3 2 255#of the end\n"sv,
        "P5\v3\f2\t255\r"sv, "P5 003 02 0255 "sv}) {
    const Bytes encoded = pnm(header, 6);
    const auto decoder = make_image_decoder();
    ASSERT_TRUE(decoder->open(encoded).is_ok()) << header;
    EXPECT_EQ(decoder->header().size(), (Size{3, 2})) << header;
    EXPECT_TRUE(decoder->check().is_ok());
    EXPECT_EQ(decoded(encoded, {2, 1, 1, 1})[0], std::to_integer<int>(encoded.back())) << header;
  }
}

TEST(PnmDecoder, RefusesWhatItIsNot) {
  EXPECT_EQ(open_reason(pnm("P4 8 1\n", 1)),
            "a PBM (P4); only binary PGM (P5) and PPM (P6) are supported");
  EXPECT_EQ(open_reason(pnm("P1 1 1 1", 0)),
            "a text PBM (P1); only binary PGM (P5) and PPM (P6) are supported");
  EXPECT_EQ(open_reason(pnm("P2 1 1 255 7\n", 0)),
            "a text PGM (P2); only binary PGM (P5) and PPM (P6) are supported");
  EXPECT_EQ(open_reason(pnm("P3 1 1 255 7 7 7\n", 0)),
            "a text PPM (P3); only binary PGM (P5) and PPM (P6) are supported");
  EXPECT_EQ(open_reason(pnm("P7\nWIDTH 1\n", 9)),
            "a PAM (P7); only binary PGM (P5) and PPM (P6) are supported");
  EXPECT_EQ(open_reason(pnm("P5 1 1 65535\n", 2)),
            "its maximal value is 65535; only 255 is supported");
  EXPECT_EQ(open_reason(pnm("P5 1 1 15\n", 1)), "its maximal value is 15; only 255 is supported");
  EXPECT_EQ(open_reason(pnm("P5 0 1 255\n", 1)), "its header says 0 x 1 pixels");
  EXPECT_EQ(open_reason(pnm("P6 x 1 255\n", 1)), "its width is not a number");
  EXPECT_EQ(open_reason(pnm("P6 -1 1 255\n", 1)), "its width is not a number");
  EXPECT_EQ(open_reason(pnm("P6 1 1e 255\n", 1)), "its height is not followed by white space");
  EXPECT_EQ(open_reason(pnm("P6 1 99999999999999999999 255\n", 1)),
            "its height has too many digits");
  EXPECT_EQ(make_image_decoder()->open(pnm("P6 20000 5001 255\n", 1)).reason(),
            "20000 x 5001 pixels; at most 100000000 are decoded (max_pixels)");
  for (const std::string_view header : {"P5\n", "P5 3", "P5 3 2 255", "P5 3 2 255#", "P5 # no end"})
    EXPECT_EQ(open_reason(pnm(header, 0)), "it ends in its header") << header;
  EXPECT_THAT(open_reason(pnm("P6!", 9)), HasSubstr("(starts with 50 36 21"));
  EXPECT_THAT(open_reason(pnm("P8 1 1 255\n", 9)), HasSubstr("(starts with 50 38 20"));
}

TEST(PnmDecoder, IsReadAsFarAsItsRegion) {
  Bytes encoded = pnm("P6 10 10 255\n", 300);
  encoded.resize(encoded.size() - 1);
  const auto decoder = make_image_decoder();
  PixelView view;
  ASSERT_TRUE(decoder->open(encoded).is_ok());
  EXPECT_TRUE(decoder->decode({0, 0, 10, 9}, view).is_ok());
  ASSERT_TRUE(decoder->open(encoded).is_ok());
  EXPECT_EQ(decoder->decode({0, 9, 1, 1}, view).reason(), "cut short: 299 of 300 bytes of pixels");
  EXPECT_EQ(view.pixels, nullptr);
  ASSERT_TRUE(decoder->open(encoded).is_ok());
  EXPECT_EQ(decoder->check().reason(), "cut short: 299 of 300 bytes of pixels");
  encoded.resize(encoded.size() + 2);  // the first of two images
  ASSERT_TRUE(decoder->open(encoded).is_ok());
  EXPECT_TRUE(decoder->check().is_ok());
}

TEST(PnmDecoder, ReducesToMeans) {
  const Bytes encoded = pnm("P6 5 3 255\n", 45);
  const auto decoder = make_image_decoder();
  PixelView view;
  ASSERT_TRUE(decoder->open(encoded).is_ok());
  ASSERT_TRUE(decoder->decode_reduced({1, 0, 2, 2}, 2, view).is_ok());
  const auto at = [&](int x, int y, int channel) {
    return std::to_integer<int>(encoded[static_cast<std::size_t>(11 + 3 * (y * 5 + x) + channel)]);
  };
  for (int c = 0; c < 3; ++c) {
    EXPECT_EQ(view.pixels[c], (at(2, 0, c) + at(3, 0, c) + at(2, 1, c) + at(3, 1, c) + 2) / 4);
    EXPECT_EQ(view.pixels[3 + c], (at(4, 0, c) + at(4, 1, c) + 1) / 2);
    EXPECT_EQ(view.pixels[view.stride + static_cast<std::size_t>(3 + c)], at(4, 2, c));
  }
  ASSERT_TRUE(decoder->open(encoded).is_ok());
  EXPECT_THROW((void)decoder->decode_reduced({0, 0, 1, 1}, 3, view), Error);
  EXPECT_THROW((void)decoder->decode({0, 0, 6, 1}, view), Error);
}

TEST(PnmDecoder, TellsWhatTheFileSays) {
  ImageInfo info;
  ASSERT_TRUE(read_image_info(pnm("P5 4 6 255\n", 24), info).is_ok());
  EXPECT_EQ(info.kind, ImageKind::pnm);
  EXPECT_EQ(info.size(), (Size{4, 6}));
  EXPECT_EQ(info.components, 1);
  EXPECT_EQ(info.scan_type, "PGM");
  EXPECT_EQ(info.header_bytes, 11U);
  EXPECT_STREQ(info.decoder, "millrace (PNM)");
}

}  // namespace
}  // namespace millrace
