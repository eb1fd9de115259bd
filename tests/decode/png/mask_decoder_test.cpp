// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/detail/mask_decoder.h>

#include <algorithm>
#include <chrono>
#include <future>

#include "decode/live_pictures.h"
#include "decode/png/chunks.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::chunk;
using testing::deflated;
using testing::end_chunk;
using ::testing::HasSubstr;
using testing::header;
using testing::png;

constexpr const char* what_masks_are = "; a mask is a PNG of grey or with a palette";

MaskDecoder mask_decoder(const DecodeLimits& limits = {}) {
  return MaskDecoder(std::make_shared<DecodeBudget>(limits));
}

std::vector<std::uint16_t> values_of(const MaskView& view) {
  return {view.values, view.values + std::ptrdiff_t{view.size.width} * view.size.height};
}

/// Returns Pillow's values of a mask.
std::vector<std::uint16_t> values_of(const testing::LivePicture& mask) {
  std::vector<std::uint16_t> values;
  for (std::size_t n = 0; n + 1 < mask.rgb.size(); n += 2)
    values.push_back(static_cast<std::uint16_t>(mask.rgb[n] | mask.rgb[n + 1] << 8));
  return values;
}

/// Returns why a mask is bad; empty if it is not.
std::string why_bad(const Bytes& encoded, Size size, const DecodeLimits& limits = {}) {
  MaskDecoder decoder = mask_decoder(limits);
  MaskView view;
  const Status decoded = decoder.decode(encoded, size, view);
  EXPECT_EQ(decoded.is_ok(), view.values != nullptr);
  return decoded.reason();
}

/// Returns a grey mask of zeros.
Bytes zeros(int width, int height, int bits) {
  const std::size_t row =
      1 + (static_cast<std::size_t>(width) * static_cast<std::size_t>(bits) + 7) / 8;
  const std::vector<std::uint8_t> rows(row * static_cast<std::size_t>(height));
  return png({header(width, height, bits, 0), chunk("IDAT", deflated(rows)), end_chunk});
}

TEST(MaskDecoder, ValuesArePillows) {
  MILLRACE_LIVE(masks, "mask");
  EXPECT_EQ(masks.size(), 116U);
  MaskDecoder decoder = mask_decoder();
  for (const testing::LivePicture& mask : masks) {
    SCOPED_TRACE(mask.name);
    MaskView view;
    const Status decoded = decoder.decode(mask.encoded, mask.size, view);
    ASSERT_TRUE(decoded.is_ok()) << decoded.reason();
    ASSERT_EQ(view.size, mask.size);
    ASSERT_EQ(values_of(view), values_of(mask));
  }
}

// Also without Pillow: each way to store values, with numbers computed by hand.
TEST(MaskDecoder, ValuesAreThoseStored) {
  const auto values = [](int width, int bits, int colour, const std::vector<std::uint8_t>& row) {
    std::vector<Bytes> chunks{header(width, 1, bits, colour)};
    if (colour == 3) chunks.push_back(chunk("PLTE", {9, 9, 9, 7, 7, 7}));
    chunks.push_back(chunk("IDAT", deflated(row)));
    chunks.push_back(end_chunk);
    MaskDecoder decoder = mask_decoder();
    MaskView view;
    const Status decoded = decoder.decode(png(chunks), {width, 1}, view);
    EXPECT_TRUE(decoded.is_ok()) << decoded.reason();
    return decoded.is_ok() ? values_of(view) : std::vector<std::uint16_t>{};
  };
  using Values = std::vector<std::uint16_t>;
  EXPECT_EQ(values(3, 1, 0, {0, 0xA0}), (Values{1, 0, 1}));
  EXPECT_EQ(values(4, 2, 0, {0, 0x1B}), (Values{0, 85, 170, 255}));
  EXPECT_EQ(values(3, 4, 0, {0, 0x1F, 0x20}), (Values{17, 255, 34}));
  EXPECT_EQ(values(2, 8, 0, {0, 7, 255}), (Values{7, 255}));
  EXPECT_EQ(values(2, 16, 0, {0, 1, 2, 255, 254}), (Values{258, 65534}));
  EXPECT_EQ(values(3, 1, 3, {0, 0xA0}), (Values{1, 0, 1}));
  EXPECT_EQ(values(4, 2, 3, {0, 0x1B}), (Values{0, 1, 2, 3}));
  EXPECT_EQ(values(3, 4, 3, {0, 0x1F, 0x20}), (Values{1, 15, 2}));
  EXPECT_EQ(values(2, 8, 3, {0, 7, 255}), (Values{7, 255}));
}

TEST(MaskDecoder, SaysWhatIsNoMaskOfTheImage) {
  EXPECT_EQ(why_bad({}, {1, 1}), std::string("it is empty (0 bytes)") + what_masks_are);
  EXPECT_EQ(why_bad(Bytes(20, std::byte{'a'}), {1, 1}),
            std::string("it is not a PNG") + what_masks_are);
  EXPECT_EQ(why_bad(testing::encode(testing::noise(8, 8, 3), {}), {8, 8}),
            std::string("its format is JPEG") + what_masks_are);
  const auto of_colour = [](int bits, int colour) {
    const Bytes pixel = chunk("IDAT", deflated(std::vector<std::uint8_t>(9)));
    return why_bad(png({header(1, 1, bits, colour), pixel, end_chunk}), {1, 1});
  };
  EXPECT_EQ(of_colour(8, 2), std::string("it has colours") + what_masks_are);
  EXPECT_EQ(of_colour(16, 6), std::string("it has colours") + what_masks_are);
  EXPECT_EQ(of_colour(8, 4), std::string("it has alpha") + what_masks_are);
  EXPECT_THAT(of_colour(3, 0), HasSubstr("IHDR"));
  EXPECT_THAT(of_colour(16, 3), HasSubstr("IHDR"));
  EXPECT_THAT(of_colour(8, 3), HasSubstr("PLTE"));
  const Bytes mask = zeros(10, 10, 8);
  EXPECT_EQ(why_bad(mask, {10, 10}), "");
  EXPECT_EQ(why_bad(mask, {20, 20}), "it is 10 x 10 pixels, the image 20 x 20");
  EXPECT_EQ(why_bad(mask, {10, 9}), "it is 10 x 10 pixels, the image 10 x 9");
  EXPECT_EQ(why_bad(mask, {}), "it is 10 x 10 pixels, the image 0 x 0");
  EXPECT_THAT(
      why_bad(png({header(9, 2, 8, 0), chunk("IDAT", deflated({0, 1})), end_chunk}), {9, 2}),
      HasSubstr("Not enough"));
}

// A size that only the header claims takes no memory and no time.
TEST(MaskDecoder, IsNotFooledByHeaders) {
  const Bytes pixel = chunk("IDAT", deflated({0, 1}));
  const auto claim = [&](std::uint32_t side, Size size) {
    return why_bad(
        png({header(static_cast<int>(side), static_cast<int>(side), 8, 0), pixel, end_chunk}),
        size);
  };
  EXPECT_EQ(claim(0x80000000, {1, 1}), "its header says 2147483648 x 2147483648 pixels");
  EXPECT_EQ(claim(0x7FFFFFFF, {1, 1}), "it is 2147483647 x 2147483647 pixels, the image 1 x 1");
  EXPECT_EQ(claim(0x7FFFFFFF, {0x7FFFFFFF, 0x7FFFFFFF}),
            "2147483647 x 2147483647 pixels; at most 100000000 are decoded (max_pixels)");
  EXPECT_EQ(claim(0, {0, 0}), "its header says 0 x 0 pixels");
}

// Each chunk has a checksum, and all chunks are read.
TEST(MaskDecoder, FindsAllDamage) {
  const std::vector<std::uint8_t> rows{0, 1, 2, 3, 0, 4, 5, 6};
  const std::vector<Bytes> masks{
      png({header(3, 2, 8, 3), chunk("PLTE", std::vector<std::uint8_t>(21)),
           chunk("tEXt", {'a', 0, 'b'}), chunk("IDAT", deflated(rows)), end_chunk}),
      png({header(3, 2, 8, 0), chunk("IDAT", deflated(rows)), chunk("tEXt", {'a', 0}), end_chunk})};
  for (const Bytes& mask : masks) {
    ASSERT_EQ(why_bad(mask, {3, 2}), "");
    for (std::size_t length = 0; length < mask.size(); ++length) {
      const Bytes cut_short(mask.begin(), mask.begin() + static_cast<std::ptrdiff_t>(length));
      EXPECT_NE(why_bad(cut_short, {3, 2}), "") << length;
    }
    for (std::size_t bit = 0; bit < 8 * mask.size(); ++bit) {
      Bytes damaged = mask;
      damaged[bit / 8] ^= std::byte{1} << (bit % 8);
      EXPECT_NE(why_bad(damaged, {3, 2}), "") << "bit " << bit;
    }
  }
}

// No state of a damaged mask reaches the next one.
TEST(MaskDecoder, DamagedMasksAreBad) {
  MILLRACE_LIVE(masks, "mask");
  MaskDecoder decoder = mask_decoder();
  std::mt19937 draw(5);
  for (const testing::LivePicture& mask : masks) {
    MaskView view;
    for (int n = 0; n < 20; ++n) {
      Bytes damaged = mask.encoded;
      damaged[draw() % damaged.size()] ^= std::byte{1} << (draw() % 8);
      if (n % 4 == 0) damaged.resize(draw() % damaged.size());
      EXPECT_FALSE(decoder.decode(damaged, mask.size, view).is_ok()) << mask.name;
      EXPECT_EQ(view.values, nullptr);
    }
    ASSERT_TRUE(decoder.decode(mask.encoded, mask.size, view).is_ok()) << mask.name;
    EXPECT_EQ(values_of(view), values_of(mask)) << mask.name;
  }
}

// The limits on memory apply to masks, too.
TEST(MaskDecoder, KeepsToTheBudget) {
  const Bytes empty = zeros(6000, 3000, 1);
  ASSERT_LT(empty.size(), 6000U * 3000 / 4000);
  EXPECT_EQ(
      why_bad(empty, {6000, 3000}, {.max_decode_bytes = 36'000'000}),
      "6000 x 3000 pixels take 36048000 bytes of memory to decode; at most 36000000 are taken "
      "(max_decode_bytes)");
  const auto budget = std::make_shared<DecodeBudget>(DecodeLimits{.max_decode_bytes = 40'000'000});
  MaskDecoder decoder(budget);
  MaskView view;
  ASSERT_TRUE(decoder.decode(empty, {6000, 3000}, view).is_ok());
  EXPECT_EQ(std::count(view.values, view.values + 6000 * 3000, 0), 6000 * 3000);
  const auto all = std::async(std::launch::async, [&] { (void)budget->take(40'000'000); });
  using std::chrono_literals::operator""ms;
  EXPECT_EQ(all.wait_for(50ms), std::future_status::timeout);  // the mask's memory is taken
  decoder.close();
  all.wait();
  // A bad mask gives the memory back by itself.
  Bytes damaged = empty;
  damaged.resize(damaged.size() - 5);
  ASSERT_FALSE(decoder.decode(damaged, {6000, 3000}, view).is_ok());
  (void)budget->take(40'000'000);  // does not wait
}

}  // namespace
}  // namespace millrace
