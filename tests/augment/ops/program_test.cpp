// SPDX-License-Identifier: Apache-2.0
//
// The allowed order of operations, and the fold that they give.
#include "ops/program.h"

#include <gtest/gtest.h>
#include <millrace/recipe.h>

#include <array>
#include <vector>

#include "support/recipe_text.h"

namespace millrace {
namespace {

using testing::why_no_list;

TEST(Program, JoinsResizeAndCropIntoOneWindow) {
  Random random(1, 1);
  const std::array<Operation, 2> ops{Resize{100}, CenterCrop{}};
  const ResamplePlan plan = Program({80, 120}, ops).plan({300, 200}, 1, random);
  EXPECT_EQ(plan.box, (Region{0, 0, 300, 200}));
  EXPECT_EQ(plan.resampling.from, (Size{300, 200}));
  EXPECT_EQ(plan.resampling.to, (Size{150, 100}));
  EXPECT_EQ(plan.resampling.window, (Region{35, 0, 80, 100}));
  EXPECT_EQ(plan.x, 0);
  EXPECT_EQ(plan.y, 10) << "rows above the image are zero";
}

TEST(Program, DrawsInTheOrderOfItsOperations) {
  const std::array<Operation, 1> crop{RandomResizedCrop{}};
  Random random(5, 9);
  Random same(5, 9);
  const ResamplePlan plan = Program({32, 32}, crop).plan({300, 200}, 1, random);
  EXPECT_EQ(plan.box, random_resized_crop({300, 200}, {0.08, 1.0}, {3.0 / 4.0, 4.0 / 3.0},
                                          [&] { return same.uniform(); }));
  EXPECT_EQ(random(), same());
}

TEST(Program, PlacesReducedPartsOfVeryWideImages) {
  constexpr int odd = (1 << 25) + 1;  // between two floats
  ResamplePlan plan({odd + 5000, 40}, 1, {8, 8}, Like{});
  plan.crop_and_resize({odd, 3, 4001, 32}, Interpolation::bilinear);
  plan.reduce(4);
  EXPECT_EQ(plan.box, (Region{1 << 23, 0, 1001, 9}));
  ASSERT_TRUE(plan.resampling.box.has_value());
  EXPECT_EQ(plan.resampling.box->left, 0.25F);
  EXPECT_EQ(plan.resampling.box->right, 1000.5F);
  EXPECT_EQ(plan.resampling.box->top, 0.75F);
  EXPECT_EQ(plan.resampling.box->bottom, 8.75F);
}

TEST(Program, RefusesAnOrderThatCannotRun) {
  const std::string crop = R"({"op": "random_resized_crop"})";
  const std::string center = R"({"op": "center_crop"})";
  const std::string flip = R"({"op": "random_horizontal_flip"})";
  const std::string device = R"({"op": "random_horizontal_flip", "on": "device"})";
  const auto why = [](const std::vector<std::string>& ops) {
    std::string list;
    for (const std::string& op : ops) list += (list.empty() ? "" : ", ") + op;
    return why_no_list("[" + list + "]");
  };
  EXPECT_EQ(why({crop, center}),
            "train.json: ops[1] (center_crop) cannot be folded with ops[0] (random_resized_crop), "
            "which makes the output already");
  EXPECT_EQ(why({flip, crop}),
            "train.json: ops[0] (random_horizontal_flip) comes before the image has the output's "
            "size; begin with random_resized_crop, or with resize and center_crop");
  EXPECT_EQ(why({crop, flip, center}),
            "train.json: ops[2] (center_crop) comes after ops[1] (random_horizontal_flip), which "
            "runs on pixels; geometric operations must come first");
  EXPECT_EQ(why({center, device, flip}),
            "train.json: ops[2] (random_horizontal_flip) comes after ops[1] "
            "(random_horizontal_flip), which runs on the device; only other "
            "operations on the device may follow, a flip before the others");
  const std::string no_output =
      "train.json: no operation makes an image of the output's size; random_resized_crop, "
      "random_crop and center_crop do";
  EXPECT_EQ(why({}), no_output);
  EXPECT_EQ(why({R"({"op": "resize"})"}), no_output);
  EXPECT_EQ(why({crop, flip, device}), "accepted");
}

}  // namespace
}  // namespace millrace
