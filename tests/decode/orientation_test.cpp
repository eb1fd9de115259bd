// SPDX-License-Identifier: Apache-2.0
//
// Orientation in XMP and in several blocks. The expected values are those of
// PIL.Image.open(file).getexif() in Pillow 13. Before 11.2 Pillow read XMP in PNGs alone.
#include <gtest/gtest.h>
#include <millrace/image_decoder.h>
#include <webp/encode.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "decode/png/chunks.h"
#include "support/jpeg_samples.h"

namespace millrace {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;
using testing::Bytes;
using testing::encode;
using testing::noise;

constexpr auto exif_6 = "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"sv;
constexpr auto exif_9 = "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x09\0\0\0"sv;
/// Another tag: ImageWidth.
constexpr auto exif_without = "II*\0\x08\0\0\0\x01\0\x00\x01\x03\0\x01\0\0\0\x05\0\0\0"sv;

struct Metadata {
  std::optional<std::string_view> exif;
  std::optional<std::string_view> xmp;
  std::optional<int> orientation;
};

const std::vector<Metadata>& metadata() {
  static const std::vector<Metadata> all{
      {{}, R"(<rdf:Description tiff:Orientation="8"/>)", 8},
      {{}, "<tiff:Orientation>3</tiff:Orientation>", 3},
      {{}, R"(tiff:Orientation="x" tiff:Orientation= "2" tiff:Orientation="7")", 7},
      {{}, R"(tiff:Orientation="5" tiff:Orientation="7")", 5},
      {{}, R"(tiff:Orientation='5')", {}},
      {{}, R"(tiff:Orientation="0" tiff:Orientation="7")", {}},
      {{}, R"(tiff:Orientation="12")", 1},
      {{}, "tiff:Orientation=\"", {}},
      {{}, "tiff:Orientation", {}},
      {{}, "", {}},
      {exif_6, R"(tiff:Orientation="3")", 6},
      {exif_9, R"(tiff:Orientation="3")", {}},
      {exif_without, R"(tiff:Orientation="3")", 3},
      {"", R"(tiff:Orientation="3")", 3},
      {exif_without, {}, {}},
  };
  return all;
}

Bytes appended(Bytes bytes, std::string_view more) {
  for (const char c : more) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

std::optional<int> orientation_of(const Bytes& encoded) {
  ImageInfo info;
  const Status read = read_image_info(encoded, info);
  EXPECT_TRUE(read.is_ok()) << read.reason();
  return info.orientation;
}

/// Returns a JPEG that has these APP1 segments.
Bytes jpeg_with(const std::vector<std::string>& segments) {
  const Bytes image = encode(noise(8, 8, 1), {});
  Bytes bytes(image.begin(), image.begin() + 2);
  for (const std::string& segment : segments) {
    const std::size_t length = segment.size() + 2;
    bytes = appended(std::move(bytes), std::string{'\xff', '\xe1', static_cast<char>(length >> 8),
                                                   static_cast<char>(length & 255)});
    bytes = appended(std::move(bytes), segment);
  }
  bytes.insert(bytes.end(), image.begin() + 2, image.end());
  return bytes;
}

std::string exif_segment(std::string_view block) { return std::string("Exif\0\0"sv).append(block); }
std::string xmp_segment(std::string_view packet) {
  return std::string("http://ns.adobe.com/xap/1.0/\0"sv).append(packet);
}

TEST(Orientation, OfXmpInJpeg) {
  for (const Metadata& data : metadata()) {
    std::vector<std::string> segments;
    if (data.xmp) segments.push_back(xmp_segment(*data.xmp));
    if (data.exif) segments.push_back(exif_segment(*data.exif));
    EXPECT_EQ(orientation_of(jpeg_with(segments)), data.orientation) << data.xmp.value_or("none");
  }
  const std::string first = xmp_segment(R"(tiff:Orientation="3")");
  const std::string last = xmp_segment(R"(tiff:Orientation="8")");
  EXPECT_EQ(orientation_of(jpeg_with({first, last})), 8);
  const std::string extension = "http://ns.adobe.com/xmp/extension/\0tiff:Orientation=\"8\""s;
  EXPECT_EQ(orientation_of(jpeg_with({first, extension})), 3);
  EXPECT_EQ(orientation_of(jpeg_with({"http://ns.adobe.com/xap/1.0/ tiff:Orientation=\"8\""})),
            std::nullopt);
}

TEST(Orientation, OfSeveralSegmentsOfExif) {
  const std::string sound = exif_segment(exif_6);
  EXPECT_EQ(orientation_of(jpeg_with({exif_segment(exif_without), sound})), std::nullopt);
  EXPECT_EQ(orientation_of(jpeg_with({sound, exif_segment(exif_without)})), 6);
  for (std::size_t length = 0; length < exif_6.size(); ++length)
    EXPECT_EQ(orientation_of(jpeg_with(
                  {exif_segment(exif_6.substr(0, length)), exif_segment(exif_6.substr(length))})),
              6)
        << length;
}

std::string webp_chunk(std::string_view name, std::string_view data) {
  std::string chunk(name);
  for (int n = 0; n < 4; ++n) chunk += static_cast<char>(data.size() >> (8 * n) & 255);
  chunk.append(data);
  if (data.size() % 2 != 0) chunk += '\0';
  return chunk;
}

TEST(Orientation, OfXmpInWebp) {
  const testing::Image picture = noise(9, 5, 1);
  std::uint8_t* written = nullptr;
  const std::size_t length = WebPEncodeLosslessRGB(picture.pixels.data(), 9, 5, 27, &written);
  const std::string plain(reinterpret_cast<const char*>(written) + 12, length - 12);
  WebPFree(written);
  const auto file = [&](char flags, const Metadata& data) {
    std::string body = "WEBP";
    body += webp_chunk("VP8X", std::string{flags, 0, 0, 0, 8, 0, 0, 4, 0, 0}) + plain;
    if (data.exif) body += webp_chunk("EXIF", *data.exif);
    if (data.xmp) body += webp_chunk("XMP ", *data.xmp);
    return appended({}, webp_chunk("RIFF", body));
  };
  for (const Metadata& data : metadata()) {
    EXPECT_EQ(orientation_of(file(0x0C, data)), data.orientation) << data.xmp.value_or("none");
    const Metadata only_exif{data.exif, {}, {}};
    EXPECT_EQ(orientation_of(file(0x08, data)), orientation_of(file(0x08, only_exif)));
    EXPECT_EQ(orientation_of(file(0, data)), std::nullopt) << "chunks that are not announced";
  }
}

/// Returns a PNG with an orientation of 6 in a compressed text of so many characters.
Bytes png_with_text(std::size_t length) {
  std::string text = R"(tiff:Orientation="6")";
  text.resize(length, ' ');
  const auto deflated = testing::deflated({text.begin(), text.end()});
  std::vector<std::uint8_t> data;
  for (const char c : "XML:com.adobe.xmp\0\1\0\0\0"sv) data.push_back(static_cast<std::uint8_t>(c));
  data.insert(data.end(), deflated.begin(), deflated.end());
  return testing::png({testing::header(7, 4), testing::chunk("iTXt", data),
                       testing::chunk("IDAT", {}), testing::end_chunk});
}

TEST(Orientation, InflatesAtMostAMebibyteOfPng) {
  EXPECT_EQ(orientation_of(png_with_text(std::size_t{1} << 20)), 6);
  EXPECT_EQ(orientation_of(png_with_text((std::size_t{1} << 20) + 1)), std::nullopt);
  EXPECT_EQ(orientation_of(png_with_text(std::size_t{30} << 20)), std::nullopt);
}

TEST(Orientation, IgnoresMalformedTextOfPng) {
  const std::vector<std::pair<std::string, std::string>> texts{
      {"tEXt", "Raw profile type exif\0\nexif\n 22\n4949"s},
      {"tEXt", "Raw profile type exif\0\nexif\n"s},
      {"tEXt", "XML:com.adobe.xmp"s},
      {"iTXt", "XML:com.adobe.xmp"s},
      {"zTXt", "Raw profile type exif\0"s},
      {"zTXt", "Raw profile type exif\0\0"s},
  };
  for (const auto& [name, text] : texts)
    for (std::size_t length = 0; length <= text.size(); ++length) {
      const Bytes encoded = testing::png(
          {testing::header(7, 4),
           testing::chunk(name, {text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length)}),
           testing::chunk("IDAT", {}), testing::end_chunk});
      EXPECT_EQ(orientation_of(encoded), std::nullopt);
    }
}

}  // namespace
}  // namespace millrace
