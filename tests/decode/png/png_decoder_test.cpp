// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <png.h>

#include "decode/live_pictures.h"
#include "decode/png/chunks.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::bytes_of;
using testing::chunk;
using testing::cut;
using testing::deflated;
using testing::end_chunk;
using ::testing::HasSubstr;
using testing::header;
using testing::Image;
using testing::noise;
using testing::png;
using testing::why_unsound;

/// Returns the picture encoded by libpng's own writer.
Bytes encoded_by_libpng(const Image& picture) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<unsigned>(picture.width);
  image.height = static_cast<unsigned>(picture.height);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t length = 0;
  png_image_write_to_memory(&image, nullptr, &length, 0, picture.pixels.data(), 0, nullptr);
  Bytes bytes(length);
  EXPECT_NE(png_image_write_to_memory(&image, bytes.data(), &length, 0, picture.pixels.data(), 0,
                                      nullptr),
            0);
  bytes.resize(length);
  return bytes;
}

TEST(PngDecoder, EqualsPillow) {
  MILLRACE_LIVE(pictures, "png");
  EXPECT_EQ(pictures.size(), 126U);
  testing::expect_pillows_pixels(pictures);
}

// As in Pillow 13. Older versions gave grey of the colour's index.
TEST(PngDecoder, ColoursBeyondThePaletteAreBlack) {
  const Bytes encoded = png({header(3, 1, 8, 3), chunk("PLTE", {10, 20, 30, 40, 50, 60}),
                             chunk("IDAT", deflated({0, 1, 2, 255})), end_chunk});
  const auto decoder = make_image_decoder();
  PixelView view;
  ASSERT_TRUE(decoder->open(encoded).is_ok());
  ASSERT_TRUE(decoder->decode({0, 0, 3, 1}, view).is_ok());
  EXPECT_EQ(bytes_of(view), (std::vector<std::uint8_t>{40, 50, 60, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(why_unsound(encoded), "");
}

TEST(PngDecoder, DamageIsSeenAsFarAsTheRegionReaches) {
  const Image picture = noise(90, 200, 3);
  const Bytes encoded = encoded_by_libpng(picture);
  Bytes half(encoded.begin(), encoded.begin() + static_cast<std::ptrdiff_t>(encoded.size() / 2));
  const auto decoder = make_image_decoder();
  PixelView view;
  ASSERT_TRUE(decoder->open(half).is_ok());
  ASSERT_TRUE(decoder->decode({5, 0, 70, 60}, view).is_ok());
  EXPECT_EQ(bytes_of(view), cut(picture.pixels, {90, 200}, {5, 0, 70, 60}));
  ASSERT_TRUE(decoder->open(half).is_ok());
  EXPECT_THAT(decoder->decode({0, 150, 9, 9}, view).reason(), HasSubstr("cut short"));
  EXPECT_EQ(view.pixels, nullptr);
  ASSERT_TRUE(decoder->open(half).is_ok());
  EXPECT_THAT(decoder->check().reason(), HasSubstr("cut short"));
}

// Each chunk has a checksum, so every flipped bit and every cut is found.
TEST(PngDecoder, CheckFindsAllDamage) {
  const Bytes encoded = encoded_by_libpng(noise(9, 7, 3));
  ASSERT_EQ(why_unsound(encoded), "");
  for (std::size_t length = 8; length < encoded.size(); ++length)
    EXPECT_NE(why_unsound({encoded.begin(), encoded.begin() + static_cast<std::ptrdiff_t>(length)}),
              "")
        << length;
  for (std::size_t bit = 64; bit < encoded.size() * 8; ++bit) {
    Bytes damaged = encoded;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_NE(why_unsound(damaged), "") << "bit " << bit;
  }
}

// For a region, the chunk that holds its end is not read to its checksum. For the whole image it
// is.
TEST(PngDecoder, DamagedPicturesAreBadOrTheSame) {
  MILLRACE_LIVE(pictures, "png");
  const auto decoder = make_image_decoder();
  std::mt19937 draw(5);
  for (const testing::LivePicture& picture : pictures)
    for (int n = 0; n < 20; ++n) {
      Bytes damaged = picture.encoded;
      damaged[8 + draw() % (damaged.size() - 8)] ^= std::byte{1} << (draw() % 8);
      if (n % 4 == 0) damaged.resize(8 + draw() % (damaged.size() - 8));
      PixelView view;
      if (!decoder->open(damaged).is_ok()) continue;
      (void)decoder->decode(testing::any_region(decoder->header().size(), draw), view).is_ok();
      ASSERT_TRUE(decoder->open(damaged).is_ok());
      const Size size = decoder->header().size();
      if (!decoder->decode({0, 0, size.width, size.height}, view).is_ok()) continue;
      EXPECT_EQ(bytes_of(view), picture.rgb) << picture.name;
    }
}

TEST(PngDecoder, SaysWhatIsWrong) {
  const Bytes pixel = chunk("IDAT", deflated({0, 1, 2, 3}));
  EXPECT_EQ(why_unsound(png({header(1, 1), pixel, end_chunk})), "");
  EXPECT_EQ(why_unsound(png({})), "it ends in its header");
  EXPECT_EQ(why_unsound(png({pixel, header(1, 1)})),
            "it does not begin with an IHDR chunk of 13 bytes");
  EXPECT_EQ(why_unsound(png({header(1, 1)})), "it ends before its pixels");
  EXPECT_EQ(why_unsound(png({header(0, 1), pixel, end_chunk})), "its header says 0 x 1 pixels");
  EXPECT_EQ(why_unsound(png({header(1, 1, 8, 5), pixel, end_chunk})),
            "its header says colour type 5");
  EXPECT_THAT(why_unsound(png({header(1, 1, 3), pixel, end_chunk})), HasSubstr("IHDR"));
  EXPECT_THAT(why_unsound(png({header(1, 1, 8, 3), pixel, end_chunk})), HasSubstr("PLTE"));
  EXPECT_THAT(why_unsound(png({header(1, 2), pixel, end_chunk})), HasSubstr("Not enough"));
  EXPECT_THAT(why_unsound(png({header(1, 1), chunk("IDAT", {1, 2, 3}), end_chunk})),
              HasSubstr("IDAT"));
  Bytes wrong = pixel;
  wrong.back() ^= std::byte{1};
  EXPECT_THAT(why_unsound(png({header(1, 1), wrong, end_chunk})), HasSubstr("CRC error"));
  Bytes text = chunk("tEXt", {'a', 0, 'b'});
  text.back() ^= std::byte{1};
  EXPECT_THAT(why_unsound(png({header(1, 1), text, pixel, end_chunk})), HasSubstr("CRC error"));
}

// Data besides the pixels is neither decompressed nor kept.
TEST(PngDecoder, TextAndProfilesCostNothing) {
  const Bytes pixel = chunk("IDAT", deflated({0, 1, 2, 3}));
  auto bomb = deflated(std::vector<std::uint8_t>(std::size_t{16} << 20));
  const std::vector<std::uint8_t> name{'a', 0, 0};
  bomb.insert(bomb.begin(), name.begin(), name.end());
  std::vector<Bytes> chunks{header(1, 1), chunk("iCCP", bomb)};
  for (int n = 0; n < 2000; ++n) chunks.push_back(chunk("zTXt", n == 0 ? bomb : name));
  chunks.push_back(chunk("iTXt", {'a', 0, 1, 0, 0, 0, 9, 9, 9}));
  chunks.push_back(chunk("gAMA", {}));
  chunks.push_back(chunk("tRNS", {1}));
  chunks.push_back(pixel);
  chunks.push_back(end_chunk);
  EXPECT_EQ(why_unsound(png(chunks)), "");
}

TEST(PngDecoder, KeepsToTheLimits) {
  std::vector<std::uint8_t> rows(std::size_t{1000} * 1001);
  const Bytes grey = png({header(1000, 1000, 8, 0), chunk("IDAT", deflated(rows)), end_chunk});
  EXPECT_EQ(why_unsound(grey), "");
  EXPECT_EQ(why_unsound(grey, {.max_pixels_per_byte = 900}),
            "1000 x 1000 pixels in " + std::to_string(grey.size()) +
                " bytes; at most 900 pixels per byte are decoded (max_pixels_per_byte)");
  EXPECT_EQ(why_unsound(png({header(20000, 5001), chunk("IDAT", {}), end_chunk})),
            "20000 x 5001 pixels; at most 100000000 are decoded (max_pixels)");
  EXPECT_EQ(why_unsound(png({header(9000, 9000), chunk("IDAT", {}), end_chunk}),
                        {.max_pixels_per_byte = 10'000'000, .max_decode_bytes = 200'000'000}),
            "9000 x 9000 pixels take 243288000 bytes of memory to decode; at most 200000000 are "
            "taken (max_decode_bytes)");
}

TEST(PngDecoder, ReducesToMeans) {
  const Image picture = noise(13, 9, 3);
  const Bytes encoded = encoded_by_libpng(picture);
  const auto decoder = make_image_decoder();
  PixelView view;
  ASSERT_TRUE(decoder->open(encoded).is_ok());
  ASSERT_TRUE(decoder->decode_reduced({3, 2, 1, 1}, 4, view).is_ok());
  for (int c = 0; c < 3; ++c)
    EXPECT_EQ(view.pixels[c], picture.pixels[static_cast<std::size_t>((8 * 13 + 12) * 3 + c)]);
}

TEST(PngInfo, TellsWhatTheFileSays) {
  ImageInfo info;
  ASSERT_TRUE(read_image_info(png({header(70, 40, 16, 4, 1), chunk("IDAT", {})}), info).is_ok());
  EXPECT_EQ(info.kind, ImageKind::png);
  EXPECT_EQ(info.size(), (Size{70, 40}));
  EXPECT_EQ(info.components, 2);
  EXPECT_EQ(info.bits_per_sample, 16);
  EXPECT_EQ(info.scan_type, "PNG grey and alpha, 16 bits, interlaced");
  EXPECT_EQ(info.header_bytes, 8U + 25 + 8);
  EXPECT_EQ(info.orientation, std::nullopt);
  EXPECT_EQ(info.chroma, std::nullopt);
}

TEST(ImageInfo, OrientationIsPillows) {
  MILLRACE_LIVE(pictures, "exif");
  EXPECT_EQ(pictures.size(), 122U);
  for (const testing::LivePicture& picture : pictures) {
    ImageInfo info;
    ASSERT_TRUE(read_image_info(picture.encoded, info).is_ok());
    EXPECT_EQ(info.orientation.value_or(0), picture.orientation) << picture.name;
  }
}

}  // namespace
}  // namespace millrace
