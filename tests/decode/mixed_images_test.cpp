// SPDX-License-Identifier: Apache-2.0
//
// Images of all kinds through one decoder: no state of one reaches another.
#include <gtest/gtest.h>
#include <millrace/image_decoder.h>

#include <numeric>

#include "decode/live_pictures.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::bytes_of;

std::vector<std::uint8_t> whole_of(ImageDecoder& decoder, const Bytes& encoded, int reduction) {
  EXPECT_TRUE(decoder.open(encoded).is_ok());
  const Size size = decoder.header().size();
  PixelView view;
  if (reduction == 1)
    EXPECT_TRUE(decoder.decode({0, 0, size.width, size.height}, view).is_ok());
  else
    EXPECT_TRUE(decoder.decode_reduced({0, 0, 1, 1}, reduction, view).is_ok());
  return bytes_of(view);
}

TEST(MixedImages, AreAsByADecoderEach) {
  std::vector<Bytes> images;
  for (const std::string kind : {"png", "webp", "pnm"}) {
    MILLRACE_LIVE(pictures, kind);
    const std::size_t step = pictures.size() / 10;
    for (std::size_t n = 0; n < 10; ++n) images.push_back(pictures[n * step].encoded);
  }
  for (int n = 0; n < 10; ++n)
    images.push_back(testing::encode(testing::noise(20 + 7 * n, 60 - 5 * n, 3),
                                     testing::encodings()[static_cast<std::size_t>(n)]));
  ASSERT_EQ(images.size(), 40U);
  const auto shared = make_image_decoder();
  std::mt19937 draw(9);
  std::vector<std::size_t> order(images.size());
  std::iota(order.begin(), order.end(), 0U);
  for (int round = 0; round < 4; ++round) {
    std::ranges::shuffle(order, draw);
    for (const std::size_t n : order) {
      const int reduction = round == 3 ? 2 : 1;
      const auto fresh = make_image_decoder();
      ASSERT_EQ(whole_of(*shared, images[n], reduction), whole_of(*fresh, images[n], reduction));
      // Damaged ones between them.
      Bytes cut_short(images[n].begin(),
                      images[n].begin() + static_cast<std::ptrdiff_t>(images[n].size() * 2 / 3));
      if (shared->open(cut_short).is_ok()) {
        EXPECT_FALSE(shared->check().is_ok());
      }
    }
  }
}

}  // namespace
}  // namespace millrace
