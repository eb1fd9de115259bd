// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <millrace/image_transform.h>

#include "support/recipe_text.h"
#include "support/sample_maker.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::cut;
using testing::encode;
using testing::Image;
using testing::Maker;
using testing::noise;
using testing::operations_of;
using testing::reference_decode;
using testing::why_no_list;

TEST(CenterCropOperation, WithoutAResizeIsTheImagesMiddle) {
  const Bytes encoded = encode(noise(64, 50, 2), {});
  const Image whole = reference_decode(encoded);
  Random random(1, 1);
  Maker inside({{31, 22}, {CenterCrop{}}});
  ASSERT_TRUE(inside.make(encoded, 0, random).is_ok());
  EXPECT_EQ(inside.image().pixels, cut(whole, {16, 14, 31, 22}).pixels);
  Maker padded({{80, 40}, {CenterCrop{}}});
  ASSERT_TRUE(padded.make(encoded, 0, random).is_ok());
  EXPECT_EQ(padded.image().pixels, cut(whole, {-8, 5, 80, 40}).pixels);
}

TEST(CenterCropOperation, ComesThroughJson) {
  EXPECT_EQ(Operation(CenterCrop{}).to_json(), R"({"op":"center_crop"})");
  EXPECT_EQ(operations_of(R"([{"op": "center_crop"}])").front(), Operation(CenterCrop{}));
  EXPECT_EQ(why_no_list(R"([{"op": "center_crop", "side": 224}])"),
            R"(train.json: ops[0] (center_crop): unknown key "side"; the known keys are "op", )"
            R"("size")");
}

}  // namespace
}  // namespace millrace
