// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <millrace/image_transform.h>

#include "support/recipe_text.h"
#include "support/sample_maker.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::encode;
using testing::Maker;
using testing::noise;
using testing::why_no_list;

TEST(ResizedCropOperation, MakesTheBoxOfTheOutputsSize) {
  const Bytes encoded = encode(noise(120, 80, 4), {});
  const testing::Image whole = testing::reference_decode(encoded);
  for (const Region box : {Region{0, 0, 120, 80}, Region{7, 5, 60, 41}, Region{119, 79, 1, 1}})
    for (const Interpolation interpolation : {Interpolation::bilinear, Interpolation::lanczos}) {
      Random random(1, 1);
      Maker maker({{33, 21}, {ResizedCrop{box, interpolation}}});
      ASSERT_TRUE(maker.make(encoded, 0, random).is_ok());
      EXPECT_EQ(maker.image().pixels,
                testing::resized(testing::cut(whole, box), {33, 21}, interpolation).pixels);
    }
}

TEST(ResizedCropOperation, RefusesAnImageWithoutTheBox) {
  const Bytes encoded = encode(noise(120, 80, 4), {});
  for (const Region box : {Region{61, 0, 60, 80}, Region{0, 41, 60, 40}, Region{65535, 0, 1, 1}}) {
    Random random(1, 1);
    Maker maker({{8, 8}, {ResizedCrop{box}}});
    const Status status = maker.make(encoded, 0, random);
    ASSERT_FALSE(status.is_ok());
    EXPECT_EQ(status.reason(), "resized_crop's box " + std::to_string(box.width) + " x " +
                                   std::to_string(box.height) + " at (" + std::to_string(box.x) +
                                   ", " + std::to_string(box.y) +
                                   ") is not inside an image of 120 x 80");
  }
}

TEST(ResizedCropOperation, ComesThroughJson) {
  const Operation op = ResizedCrop{{1, 2, 30, 40}, Interpolation::box};
  EXPECT_EQ(op.to_json(), R"({"op":"resized_crop","box":[1,2,30,40],"interpolation":"box"})");
  EXPECT_EQ(testing::operations_of("[" + op.to_json() + "]").front(), op);
}

TEST(ResizedCropOperation, NamesWhatIsWrong) {
  const auto why = [](const std::string& parameters) {
    return why_no_list(R"([{"op": "resized_crop")" + parameters + "}]");
  };
  const std::string place = "train.json: ops[0] (resized_crop): ";
  EXPECT_EQ(why(""), place + R"("box" is [0,0,0,0], must be x and y from 0, width and height from )"
                             "1, all up to 65535");
  EXPECT_EQ(why(R"(, "box": [1, 2, 3])"),
            place + R"("box" is [1,2,3], must be four integers, [x, y, width, height])");
  EXPECT_EQ(why(R"(, "box": [1, 2, 3, "4"])"),
            place + R"("box" is "4", must be four integers, [x, y, width, height])");
  EXPECT_EQ(why(R"(, "box": [-1, 2, 3, 4])"), place + R"("box" is -1, must be in 0..65535)");
  EXPECT_EQ(why(R"(, "box": [1, 2, 0, 4])"), place + R"("box" is 0, must be in 1..65535)");
  EXPECT_THROW(image_transform({{8, 8}, {ResizedCrop{}}}), Error);
  EXPECT_EQ(
      why_no_list(R"([{"op": "resize"}, {"op": "resized_crop", "box": [0, 0, 1, 1]}])"),
      "train.json: ops[1] (resized_crop) cannot be folded with the operations before it: the image "
      "would be resampled twice");
}

}  // namespace
}  // namespace millrace
