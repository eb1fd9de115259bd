// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <millrace/image_transform.h>

#include <cstring>
#include <limits>

#include "support/recipe_text.h"
#include "support/sample_maker.h"

namespace millrace {
namespace {

using testing::at;
using testing::Bytes;
using testing::encode;
using testing::Image;
using testing::Maker;
using testing::noise;
using testing::operations_of;
using testing::why_no_list;

Image mirrored(const Image& image) {
  Image other = image;
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x)
      std::memcpy(&other.pixels[at(image, x, y)], &image.pixels[at(image, image.width - 1 - x, y)],
                  3);
  return other;
}

TEST(RandomHorizontalFlipOperation, MirrorsAndDrawsAlways) {
  const Bytes encoded = encode(noise(120, 90, 3), {});
  for (const Size output : {Size{48, 40}, Size{49, 3}, Size{1, 5}}) {
    Maker plain({output, {RandomResizedCrop{}, RandomHorizontalFlip{0}}});
    Maker flipped({output, {RandomResizedCrop{}, RandomHorizontalFlip{1}}});
    Random random(3, 9);
    Random same(3, 9);
    ASSERT_TRUE(plain.make(encoded, 0, random).is_ok());
    ASSERT_TRUE(flipped.make(encoded, 0, same).is_ok());
    EXPECT_EQ(flipped.image().pixels, mirrored(plain.image()).pixels);
    EXPECT_EQ(random(), same());
  }
}

TEST(RandomHorizontalFlipOperation, FlipsAsOftenAsAsked) {
  const Bytes encoded = encode(noise(16, 16, 3), {});
  Maker plain({{16, 16}, {CenterCrop{}}});
  Maker sometimes({{16, 16}, {CenterCrop{}, RandomHorizontalFlip{0.25}}});
  Random random(1, 1);
  ASSERT_TRUE(plain.make(encoded, 0, random).is_ok());
  int flips = 0;
  for (std::uint64_t position = 0; position < 2000; ++position) {
    Random at_position(8, position);
    ASSERT_TRUE(sometimes.make(encoded, 0, at_position).is_ok());
    if (sometimes.image().pixels != plain.image().pixels) ++flips;
  }
  EXPECT_NEAR(flips, 500, 80);
}

TEST(RandomHorizontalFlipOperation, OnTheDeviceTellsItWhatTheWorkerWouldFlip) {
  const Bytes encoded = encode(noise(16, 16, 3), {});
  Maker plain({{16, 16}, {CenterCrop{}}});
  Maker flipped({{16, 16}, {CenterCrop{}, RandomHorizontalFlip{0.5}}});
  Maker told({{16, 16}, {CenterCrop{}, RandomHorizontalFlip{0.5, FlipOn::device}}});
  Random none(1, 1);
  ASSERT_TRUE(plain.make(encoded, 0, none).is_ok());
  int flips = 0;
  for (std::uint64_t position = 0; position < 40; ++position) {
    Random random(8, position);
    Random same(8, position);
    ASSERT_TRUE(flipped.make(encoded, 0, random).is_ok());
    ASSERT_TRUE(told.make(encoded, 0, same).is_ok());
    EXPECT_EQ(told.image().pixels, plain.image().pixels);
    EXPECT_EQ(told.flip() == 1, flipped.image().pixels != plain.image().pixels);
    flips += told.flip();
  }
  EXPECT_GT(flips, 5);
  EXPECT_LT(flips, 35);
}

// A state to resume from identifies the recipe by its text. So the text must not change while the
// meaning stays.
TEST(RandomHorizontalFlipOperation, SaysWhereItFlipsOnlyWhereThatIsTheDevice) {
  const Operation on_worker = RandomHorizontalFlip{0.25};
  const Operation on_device = RandomHorizontalFlip{0.25, FlipOn::device};
  EXPECT_EQ(on_worker.to_json(), R"({"op":"random_horizontal_flip","p":0.25})");
  EXPECT_EQ(on_device.to_json(), R"({"op":"random_horizontal_flip","p":0.25,"on":"device"})");
  for (const Operation& op : {on_worker, on_device})
    EXPECT_EQ(operations_of(R"([{"op": "center_crop"}, )" + op.to_json() + "]").back(), op);
  EXPECT_EQ(
      operations_of(R"([{"op": "center_crop"}, {"op": "random_horizontal_flip", "on": "worker"}])")
          .back(),
      Operation(RandomHorizontalFlip{}));
}

TEST(RandomHorizontalFlipOperation, NamesWhatIsWrong) {
  const auto why = [](const std::string& parameters) {
    return why_no_list(R"([{"op": "center_crop"}, {"op": "random_horizontal_flip", )" + parameters +
                       "}]");
  };
  const std::string place = "train.json: ops[1] (random_horizontal_flip): ";
  EXPECT_EQ(why(R"("p": 1.5)"), place + R"("p" is 1.5, must lie in 0.0..1.0)");
  EXPECT_EQ(why(R"("p": "often")"), place + R"("p" is "often", must be a number)");
  EXPECT_EQ(why(R"("on": "gpu")"), place + R"("on" is "gpu", must be "worker" or "device")");
  EXPECT_EQ(why(R"("on": 1)"), place + R"("on" is 1, must be "worker" or "device")");
}

TEST(RandomHorizontalFlipOperation, RefusesWhatIsNoNumber) {
  const double no_number = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(image_transform({{8, 8}, {CenterCrop{}, RandomHorizontalFlip{no_number}}}), Error);
}

}  // namespace
}  // namespace millrace
