// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <millrace/image_decoder.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "support/jpeg_samples.h"
#include "support/run_program.h"

namespace millrace::testing {

/// A file, and its pixels by Pillow: RGB in rows without gaps.
struct LivePicture {
  std::string name;
  Bytes encoded;
  Size size;
  /// EXIF orientation; 0 if the file has none.
  int orientation = 0;
  /// For a mask its values, 2 bytes each, the lower first.
  std::vector<std::uint8_t> rgb;
};

/// Returns the pictures of a kind, made by this machine's Pillow and by live_pictures.py, which
/// lists the kinds. Empty without Pillow.
inline std::vector<LivePicture> live_pictures(const std::string& kind) {
  const TemporaryFolder folder;
  const auto python =
      run_program({"/usr/bin/python3", MILLRACE_LIVE_PICTURES, kind, folder.path().string()});
  std::vector<LivePicture> pictures;
  if (python.exit_code == 77) return pictures;
  EXPECT_EQ(python.exit_code, 0) << python.err;
  std::istringstream lines(python.out);
  for (LivePicture picture;
       lines >> picture.name >> picture.size.width >> picture.size.height >> picture.orientation;) {
    picture.encoded = read_file(folder / picture.name);
    const Bytes rgb = read_file(folder / (picture.name + ".rgb"));
    picture.rgb.resize(rgb.size());
    std::memcpy(picture.rgb.data(), rgb.data(), rgb.size());
    pictures.push_back(picture);
  }
  return pictures;
}

/// Returns the bytes of a view, in rows without gaps.
inline std::vector<std::uint8_t> bytes_of(const PixelView& view) {
  std::vector<std::uint8_t> rgb;
  for (int y = 0; y < view.height; ++y) {
    const std::uint8_t* row = view.pixels + static_cast<std::size_t>(y) * view.stride;
    rgb.insert(rgb.end(), row, row + std::ptrdiff_t{3} * view.width);
  }
  return rgb;
}

/// Returns a region of RGB pixels, in rows without gaps.
inline std::vector<std::uint8_t> cut(const std::vector<std::uint8_t>& rgb, Size size,
                                     const Region& region) {
  return bytes_of({rgb.data() + 3 * (static_cast<std::ptrdiff_t>(region.y) * size.width + region.x),
                   region.width, region.height, 3 * static_cast<std::size_t>(size.width)});
}

/// Returns any region of an image; the same for the same draw.
inline Region any_region(Size size, std::mt19937& draw) {
  const auto below = [&](int end) { return static_cast<int>(draw() % static_cast<unsigned>(end)); };
  const int x = below(size.width);
  const int y = below(size.height);
  return {x, y, 1 + below(size.width - x), 1 + below(size.height - y)};
}

/// Returns why an image is bad, by open or check; empty if it is not.
inline std::string why_unsound(const Bytes& encoded, const DecodeLimits& limits = {}) {
  const auto decoder = make_image_decoder(std::make_shared<DecodeBudget>(limits));
  const std::string reason = decoder->open(encoded).reason();
  return reason.empty() ? decoder->check().reason() : reason;
}

/// Expects that a decoder gives Pillow's pixels of each picture, for the whole and for regions.
inline void expect_pillows_pixels(const std::vector<LivePicture>& pictures) {
  const auto decoder = make_image_decoder();
  std::mt19937 draw(1);
  for (const LivePicture& picture : pictures) {
    SCOPED_TRACE(picture.name);
    const Status opened = decoder->open(picture.encoded);
    ASSERT_TRUE(opened.is_ok()) << opened.reason();
    ASSERT_EQ(decoder->header().size(), picture.size);
    const Status checked = decoder->check();
    ASSERT_TRUE(checked.is_ok()) << checked.reason();
    std::vector<Region> regions{{0, 0, picture.size.width, picture.size.height},
                                {0, 0, 1, 1},
                                {picture.size.width - 1, picture.size.height - 1, 1, 1}};
    for (int n = 0; n < 25; ++n) regions.push_back(any_region(picture.size, draw));
    for (const Region& region : regions) {
      ASSERT_TRUE(decoder->open(picture.encoded).is_ok());
      PixelView view;
      const Status decoded = decoder->decode(region, view);
      ASSERT_TRUE(decoded.is_ok()) << decoded.reason();
      ASSERT_EQ(bytes_of(view), cut(picture.rgb, picture.size, region))
          << region.width << " x " << region.height << " at " << region.x << ", " << region.y;
    }
  }
}

}  // namespace millrace::testing

/// Sets `pictures` to those of a kind. Without Pillow it skips the running test with a message.
#define MILLRACE_LIVE(pictures, kind)                             \
  const auto pictures = ::millrace::testing::live_pictures(kind); \
  if (pictures.empty() && !::testing::Test::HasFailure())         \
  GTEST_SKIP() << "/usr/bin/python3 has no Pillow (python3-pil)"
