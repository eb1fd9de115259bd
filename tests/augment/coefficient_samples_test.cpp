// SPDX-License-Identifier: Apache-2.0
//
// Samples of records of coefficients, whose rows are resampled as soon as they are decoded.
#include <gtest/gtest.h>
#include <millrace/detail/jpeg_recoder.h>

#include <string>

#include "support/sample_maker.h"

namespace millrace {
namespace {

using testing::Bytes;

Bytes record_of(const Bytes& jpeg) {
  JpegRecoder recoder(std::make_shared<DecodeBudget>());
  Bytes record;
  EXPECT_TRUE(recoder.store(jpeg, record).is_ok());
  return record;
}

TEST(CoefficientSamples, AreThoseOfTheJpeg) {
  const Recipe narrow{{30, 40}, {RandomCrop{.padding = {9}, .pad_if_needed = true}}};
  const Recipe recipes[] = {
      Recipe::train(40),
      Recipe::eval(50),
      narrow,
      {{32, 32}, {RandomResizedCrop{}, RandomHorizontalFlip{}, RandomVerticalFlip{}}},
      {{20, 20}, {FiveCrop{}}}};
  for (const Recipe& recipe : recipes) {
    testing::Maker of_jpeg(recipe);
    testing::Maker of_record(recipe);
    for (unsigned n = 0; n < 40; ++n) {
      const int width = 30 + static_cast<int>(n * 37 % 200);
      const Bytes jpeg =
          encode(testing::noise(width, 60 + static_cast<int>(n * 53 % 200), n), {.name = "4:2:0"});
      Random random(n, 1);
      Random same(n, 1);
      ASSERT_TRUE(of_jpeg.make(jpeg, 0, random).is_ok());
      ASSERT_TRUE(of_record.make(record_of(jpeg), 0, same).is_ok());
      ASSERT_TRUE(of_record.image().pixels == of_jpeg.image().pixels)
          << n << " of output " << recipe.output.width;
      EXPECT_EQ(of_record.decoder_name(), "millrace (coefficients)");
      EXPECT_GT(of_record.stage_ns()[0], 0U);
      EXPECT_GT(of_record.stage_ns()[1], 0U);
    }
  }
}

// The first rows are resampled before the corrupt ones are found.
TEST(CoefficientSamples, ACorruptRecordIsBadAndLeavesNothingBehind) {
  const Bytes record = record_of(encode(testing::noise(90, 120, 1), {}));
  Bytes corrupt = record;
  for (std::size_t at = record.size() / 2; at < record.size() * 3 / 4; ++at)
    corrupt[at] = std::byte{0xFF};
  testing::Maker used(Recipe::eval(50));
  testing::Maker fresh(Recipe::eval(50));
  Random random(1, 1);
  EXPECT_EQ(used.make(corrupt, 0, random).reason(),
            "its coefficients are corrupt; pack the dataset again");
  ASSERT_TRUE(used.make(record, 0, random).is_ok());
  ASSERT_TRUE(fresh.make(record, 0, random).is_ok());
  EXPECT_TRUE(used.image().pixels == fresh.image().pixels);
}

}  // namespace
}  // namespace millrace
