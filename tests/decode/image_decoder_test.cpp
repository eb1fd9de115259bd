// SPDX-License-Identifier: Apache-2.0
//
// The interface of the codecs: what every decoder does, for each kind of image.
#include <gmock/gmock.h>
#include <millrace/image_decoder.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "support/jpeg_samples.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::encode;
using testing::Encoding;
using ::testing::HasSubstr;
using testing::Image;
using testing::noise;

Bytes bytes_of(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(first, first + text.size());
}

/// Returns the reason why bytes are refused, checked with each function that refuses them.
std::string why_not(const Bytes& encoded) {
  const auto decoder = make_image_decoder();
  const std::string reason = decoder->open(encoded).reason();
  ImageInfo info;
  EXPECT_EQ(read_image_info(encoded, info).reason(), reason);
  EXPECT_EQ(check_image_kind(encoded).reason(), reason);
  const std::size_t head = std::min<std::size_t>(encoded.size(), 16);
  EXPECT_EQ(check_image_kind(std::span(encoded).first(head)).reason(), reason);
  return reason;
}

TEST(ImageDecoder, NamesWhatItCannotDecode) {
  using namespace std::string_view_literals;
  EXPECT_EQ(why_not({}), "empty (0 bytes)");
  EXPECT_EQ(why_not(bytes_of("<htm")), "not a JPEG, PNG, WebP or PNM (starts with 3c 68 74 6d)");
  EXPECT_EQ(why_not(bytes_of("\xff")), "not a JPEG, PNG, WebP or PNM (starts with ff)");
  EXPECT_EQ(why_not(bytes_of("GIF89a\1\0\1\0"sv)),
            "a GIF image; only JPEG, PNG, WebP and PNM are supported");
  EXPECT_EQ(why_not(bytes_of("BM\x36\0\0\0"sv)),
            "a BMP image; only JPEG, PNG, WebP and PNM are supported");
  EXPECT_EQ(why_not(bytes_of("II*\0\x08\0\0\0"sv)),
            "a TIFF image; only JPEG, PNG, WebP and PNM are supported");
  EXPECT_EQ(why_not(bytes_of("\0\0\0\x20"
                             "ftypavif"sv)),
            "an AVIF image; only JPEG, PNG, WebP and PNM are supported");
  EXPECT_EQ(why_not(bytes_of("\0\0\0\x18"
                             "ftypheic"sv)),
            "a HEIC image; only JPEG, PNG, WebP and PNM are supported");
}

TEST(ImageDecoder, DecodesWhatItOpened) {
  const auto decoder = make_image_decoder();
  for (const int width : {31, 80}) {
    const Bytes encoded = encode(noise(width, 17, 1), {});
    const Image whole = testing::reference_decode(encoded);
    ASSERT_TRUE(check_image_kind(encoded).is_ok());
    ASSERT_TRUE(decoder->open(encoded).is_ok());
    EXPECT_EQ(decoder->header().kind, ImageKind::jpeg);
    EXPECT_EQ(decoder->header().size(), (Size{width, 17}));
    EXPECT_EQ(decoder->header().components, 3);
    PixelView view;
    ASSERT_TRUE(decoder->decode({4, 5, 20, 10}, view).is_ok());
    for (int y = 0; y < 10; ++y)
      ASSERT_TRUE(std::equal(
          view.pixels + static_cast<std::size_t>(y) * view.stride,
          view.pixels + static_cast<std::size_t>(y) * view.stride + 60,
          whole.pixels.begin() + static_cast<std::ptrdiff_t>(((5 + y) * width + 4) * 3)));
  }
}

TEST(ImageDecoder, ChecksWithoutDecoding) {
  const auto decoder = make_image_decoder();
  Bytes encoded = encode(noise(64, 64, 1), {});
  ASSERT_TRUE(decoder->open(encoded).is_ok());
  EXPECT_TRUE(decoder->check().is_ok());
  encoded.resize(encoded.size() / 2);
  ASSERT_TRUE(decoder->open(encoded).is_ok());
  EXPECT_THAT(decoder->check().reason(), HasSubstr("remature end"));
}

// After a refusal the image that was open before is not decoded.
TEST(ImageDecoder, HasNoImageAfterARefusal) {
  const auto decoder = make_image_decoder();
  PixelView view;
  EXPECT_THROW((void)decoder->header(), Error);
  EXPECT_THROW((void)decoder->check(), Error);
  ASSERT_TRUE(decoder->open(encode(noise(20, 10, 1), {})).is_ok());
  EXPECT_FALSE(decoder->open(bytes_of("GIF89a")).is_ok());
  EXPECT_THROW((void)decoder->decode({0, 0, 1, 1}, view), Error);
  ASSERT_TRUE(decoder->open(encode(noise(20, 10, 1), {})).is_ok());
  EXPECT_FALSE(decoder->open(bytes_of("\xff\xd8 and no more")).is_ok());
  EXPECT_THROW((void)decoder->decode({0, 0, 1, 1}, view), Error);
}

TEST(ImageInfo, TellsWhatTheFileSays) {
  ImageInfo info;
  ASSERT_TRUE(read_image_info(encode(noise(70, 40, 1), {.scans = Encoding::Scans::progressive,
                                                        .arithmetic = true,
                                                        .quality = 77}),
                              info)
                  .is_ok());
  EXPECT_EQ(info.kind, ImageKind::jpeg);
  EXPECT_EQ(info.size(), (Size{70, 40}));
  EXPECT_EQ(info.components, 3);
  EXPECT_EQ(info.scan_type, "progressive, arithmetic");
  EXPECT_EQ(info.chroma, "4:2:0");
  EXPECT_EQ(info.quality, 77);
  EXPECT_EQ(info.orientation, std::nullopt);
}

}  // namespace
}  // namespace millrace
