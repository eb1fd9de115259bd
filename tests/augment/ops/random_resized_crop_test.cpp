// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <millrace/image_transform.h>

#include <limits>

#include "support/recipe_text.h"
#include "support/sample_maker.h"

namespace millrace {
namespace {

using testing::bilinear;
using testing::Bytes;
using testing::cut;
using testing::encode;
using testing::Image;
using testing::Maker;
using testing::noise;
using testing::operations_of;
using testing::reference_decode;
using testing::why_no_list;

TEST(RandomResizedCropOperation, IsItsBoxResized) {
  const Bytes encoded = encode(noise(120, 90, 3), {});
  const Image whole = reference_decode(encoded);
  const RandomResizedCrop crop{{0.08, 1}, {0.75, 4.0 / 3}};
  Maker maker({{96, 80}, {crop}});
  for (std::uint64_t position = 0; position < 40; ++position) {
    Random random(5, position);
    Random same(5, position);
    ASSERT_TRUE(maker.make(encoded, 0, random).is_ok());
    const Region box =
        random_resized_crop({120, 90}, crop.scale, crop.ratio, [&] { return same.uniform(); });
    ASSERT_EQ(maker.image().pixels, bilinear(cut(whole, box), {96, 80}).pixels) << position;
  }
}

TEST(RandomResizedCropOperation, ComesThroughJson) {
  const Operation op = RandomResizedCrop{{0.1, 0.7}, {0.3, 1.0 / 3}};
  EXPECT_EQ(op.to_json(),
            R"({"op":"random_resized_crop","scale":[0.1,0.7],"ratio":[0.3,0.3333333333333333]})");
  EXPECT_EQ(operations_of("[" + op.to_json() + "]").front(), op);
  EXPECT_EQ(operations_of(R"([{"op": "random_resized_crop"}])").front(),
            Operation(RandomResizedCrop{}));
}

TEST(RandomResizedCropOperation, NamesWhatIsWrong) {
  const auto why = [](const std::string& parameters) {
    return why_no_list(R"([{"op": "random_resized_crop", )" + parameters + "}]");
  };
  const std::string place = "train.json: ops[0] (random_resized_crop): ";
  EXPECT_EQ(why(R"("scale": [0.5, 1.5])"),
            place + R"("scale" is [0.5, 1.5], both must lie in 0.0..1.0)");
  EXPECT_EQ(why(R"("scale": [0, 0])"),
            place + R"("scale" is [0.0, 0.0], the second must be above 0)");
  EXPECT_EQ(why(R"("ratio": [2, 1])"),
            place + R"("ratio" is [2.0, 1.0], the first must not be above the second)");
  EXPECT_EQ(why(R"("ratio": [0, 1])"),
            place + R"("ratio" is [0.0, 1.0], both must lie in 0.001..1000.0)");
  EXPECT_EQ(why(R"("ratio": 1)"), place + R"("ratio" is 1, must be two numbers, [low, high])");
  EXPECT_EQ(why(R"("side": 224)"),
            place + R"(unknown key "side"; the known keys are "op", "size", "scale", "ratio", )"
                    R"("interpolation", "antialias")");
}

TEST(RandomResizedCropOperation, RefusesWhatIsNoNumber) {
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_THROW(image_transform({{8, 8}, {RandomResizedCrop{{0.1, infinite}, {1, 1}}}}), Error);
}

// A crop of the resized image would be another resampling than a crop of the image.
TEST(RandomResizedCropOperation, CannotBeJoinedWithAResize) {
  EXPECT_EQ(
      why_no_list(R"([{"op": "resize"}, {"op": "random_resized_crop"}])"),
      "train.json: ops[1] (random_resized_crop) cannot be folded with the operations before it: "
      "the image would be resampled twice");
}

}  // namespace
}  // namespace millrace
