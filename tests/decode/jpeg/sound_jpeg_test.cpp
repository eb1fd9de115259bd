// SPDX-License-Identifier: Apache-2.0
//
// Which JPEGs are valid: those that a new decoder reads to the end, independently of earlier
// images.
#include <gmock/gmock.h>
#include <millrace/random.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>
#include <string>

#include "jpeg/decoder/jpeg_decoder.h"
#include "support/jpeg_samples.h"
#include "support/shared_data.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::encode;
using testing::Encoding;
using ::testing::HasSubstr;
using testing::Image;
using testing::mixed_jpegs;
using testing::noise;

/// An image's pixels, or the reason why decoding failed.
struct Outcome {
  std::string reason;
  std::vector<std::uint8_t> pixels;
  std::string checked;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome outcome(JpegDecoder& decoder, const Bytes& encoded) {
  Status opened = decoder.open(encoded);
  if (!opened.is_ok()) return {opened.reason(), {}, opened.reason()};
  Outcome made;
  PixelView view;
  const Size size = decoder.header().size();
  made.reason = decoder.decode({0, 0, size.width, size.height}, view).reason();
  for (int row = 0; row < view.height; ++row) {
    const std::uint8_t* first = view.pixels + static_cast<std::size_t>(row) * view.stride;
    made.pixels.insert(made.pixels.end(), first, first + std::ptrdiff_t{3} * view.width);
  }
  opened = decoder.open(encoded);
  made.checked = opened.is_ok() ? decoder.check().reason() : opened.reason();
  return made;
}

/// Returns the reason why check() refuses an image; empty if it does not.
std::string refusal(JpegDecoder& decoder, const Bytes& encoded) {
  const Status opened = decoder.open(encoded);
  return opened.is_ok() ? decoder.check().reason() : opened.reason();
}

void expect_same_in_any_order(const std::vector<Bytes>& jpegs, int orders) {
  std::vector<Outcome> fresh;
  std::size_t bad = 0;
  for (const Bytes& encoded : jpegs) {
    JpegDecoder decoder;
    fresh.push_back(outcome(decoder, encoded));
    Image reference;
    try {
      reference = testing::reference_decode(encoded);  // a handle of its own
    } catch (const std::exception&) {
    }
    ASSERT_EQ(fresh.back().checked.empty(), !reference.pixels.empty()) << fresh.back().checked;
    if (!fresh.back().checked.empty())
      ++bad;
    else
      ASSERT_EQ(fresh.back().pixels, reference.pixels);
  }
  EXPECT_GE(bad, jpegs.size() / 4);
  EXPECT_GE(jpegs.size() - bad, jpegs.size() / 4);

  JpegDecoder decoder;
  Random random(1, 0);
  std::vector<std::size_t> order(jpegs.size());
  std::iota(order.begin(), order.end(), 0U);
  for (int n = 0; n < orders; ++n) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t number : order) {
      const Outcome made = outcome(decoder, jpegs[number]);
      ASSERT_TRUE(made == fresh[number])
          << "order " << n << ", image " << number << ": \"" << made.reason << "\", fresh \""
          << fresh[number].reason << "\"";
    }
  }
}

TEST(SoundJpeg, StartsFromNothing) {
  const std::vector<Bytes> jpegs = mixed_jpegs();
  ASSERT_EQ(jpegs.size(), 40U);
  expect_same_in_any_order(jpegs, 100);
}

TEST(SoundJpeg, PhotographsWithoutTablesStartFromNothing) {
  MILLRACE_NEEDS_SHARED("data/photos");
  std::vector<Bytes> jpegs;
  const auto files = testing::jpeg_files(testing::shared_dir() / "data/photos");
  for (std::size_t n = 0; n < files.size() && jpegs.size() < 40; n += 50) {
    const Bytes photograph = testing::read_file(files[n]);
    jpegs.push_back(photograph);
    jpegs.push_back(testing::without(photograph, 0xC4));
    jpegs.push_back(testing::without(photograph, 0xDB));
    jpegs.emplace_back(photograph.begin(), photograph.end() - 1000);
  }
  expect_same_in_any_order(jpegs, 3);
}

TEST(SoundJpeg, MissingQuantisationTablesAreBadAndMissingHuffmanTablesAreTheStandardOnes) {
  JpegDecoder decoder;
  const Bytes sound = encode(noise(40, 30, 1), {});
  ASSERT_EQ(refusal(decoder, sound), "");
  EXPECT_EQ(refusal(decoder, testing::without(sound, 0xDB)),
            "Quantization table 0x00 was not defined");
  ASSERT_EQ(refusal(decoder, encode(noise(40, 30, 2), {.optimised = true})), "");
  EXPECT_EQ(outcome(decoder, testing::without(sound, 0xC4)).pixels,
            testing::reference_decode(sound).pixels);
}

/// Returns the peak signal-to-noise ratio of two images in dB; 100 if they are equal.
double psnr(const Outcome& one, const Outcome& other) {
  double sum = 0;
  for (std::size_t n = 0; n < one.pixels.size(); ++n) {
    const double difference = one.pixels[n] - other.pixels[n];
    sum += difference * difference;
  }
  const double mean = sum / static_cast<double>(one.pixels.size());
  return mean == 0 ? 100 : 10 * std::log10(255 * 255 / mean);
}

// The README of decode/ has these shares.
TEST(SoundJpeg, FlippedBitsInPhotographsAreMostlyFound) {
  MILLRACE_NEEDS_SHARED("data/photos");
  JpegDecoder decoder;
  Random random(12, 0);
  int flips = 0;
  int accepted = 0;
  int visible = 0;
  const auto files = testing::jpeg_files(testing::shared_dir() / "data/photos");
  for (std::size_t n = 0; n < files.size() && n < 400; n += 2) {
    Bytes photograph = testing::read_file(files[n]);
    const Outcome sound = outcome(decoder, photograph);
    ASSERT_EQ(sound.checked, "") << files[n];
    const std::size_t scan = testing::first_scan(photograph);
    for (int flip = 0; flip < 5; ++flip, ++flips) {
      std::byte& damaged = photograph[scan + random() % (photograph.size() - 2 - scan)];
      const std::byte before = damaged;
      damaged ^= std::byte{1} << random() % 8;
      if (refusal(decoder, photograph).empty()) {
        ++accepted;
        if (psnr(outcome(decoder, photograph), sound) < 25) ++visible;
      }
      damaged = before;
    }
  }
  std::cout << flips << " flipped bits: " << accepted << " accepted, " << visible
            << " of them below 25 dB\n";
  EXPECT_EQ(flips, 1000);
  EXPECT_LE(visible, 100);
}

TEST(SoundJpeg, BytesBehindAScansDataAreBad) {
  JpegDecoder decoder;
  for (const Encoding& encoding : testing::encodings()) {
    SCOPED_TRACE(encoding.name);
    const Bytes sound = encode(noise(70, 50, 3), encoding);
    ASSERT_EQ(refusal(decoder, sound), "");
    // libjpeg does not report up to 8 bytes before each marker.
    std::size_t count = 60;
    for (std::size_t at = 0; at + 1 < sound.size(); ++at)
      if (sound[at] == std::byte{0xFF} && (sound[at + 1] & std::byte{0xF8}) == std::byte{0xD0})
        count += 8;
    Bytes padded = sound;
    padded.insert(padded.end() - 2, count, std::byte{0x55});
    EXPECT_THAT(refusal(decoder, padded), HasSubstr("extraneous bytes before marker 0xd9"));
  }
}

TEST(SoundJpeg, AMissingEndIsBad) {
  JpegDecoder decoder;
  for (const Encoding& encoding : testing::encodings()) {
    SCOPED_TRACE(encoding.name);
    Bytes endless = encode(noise(70, 50, 3), encoding);
    endless.resize(endless.size() - 2);
    EXPECT_EQ(refusal(decoder, endless), "Premature end of JPEG file");
  }
}

TEST(SoundJpeg, BytesThatNoPixelIsMadeOfAreNot) {
  JpegDecoder decoder;
  for (const Encoding& encoding : testing::encodings()) {
    SCOPED_TRACE(encoding.name);
    Bytes padded = encode(noise(70, 50, 3), encoding);
    padded.insert(padded.begin() + 2, 20, std::byte{0x55});  // between markers before the scan
    padded.insert(padded.end(), 20, std::byte{0x55});        // after EOI
    EXPECT_EQ(refusal(decoder, padded), "");
  }
}

}  // namespace
}  // namespace millrace
