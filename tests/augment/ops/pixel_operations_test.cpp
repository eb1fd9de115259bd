// SPDX-License-Identifier: Apache-2.0
//
// The JSON of the operations on colours and of the policies, and recipes that run them.
#include <gtest/gtest.h>
#include <millrace/colour_operations.h>
#include <millrace/policies.h>

#include "support/recipe_text.h"
#include "support/sample_maker.h"

namespace millrace {
namespace {

using testing::operations_of;
using testing::why_no_list;

struct Written {
  Operation operation;
  const char* json;
};

const std::vector<Written>& written() {
  static const std::vector<Written> all{
      {ColorJitter::of(0.5, 0.25, 2, 0.125),
       R"({"op":"color_jitter","brightness":[0.5,1.5],"contrast":[0.75,1.25],)"
       R"("saturation":[0.0,3.0],"hue":[-0.125,0.125]})"},
      {Grayscale{}, R"({"op":"grayscale"})"},
      {RandomGrayscale{}, R"({"op":"random_grayscale","p":0.1})"},
      {GaussianBlur{.kernel_size = 9},
       R"({"op":"gaussian_blur","kernel_size":9,"sigma":[0.1,2.0]})"},
      {RandomSolarize{.threshold = 128}, R"({"op":"random_solarize","threshold":128.0,"p":0.5})"},
      {RandomPosterize{.bits = 4}, R"({"op":"random_posterize","bits":4,"p":0.5})"},
      {RandomEqualize{}, R"({"op":"random_equalize","p":0.5})"},
      {RandomAutocontrast{}, R"({"op":"random_autocontrast","p":0.5})"},
      {RandomInvert{}, R"({"op":"random_invert","p":0.5})"},
      {RandomAdjustSharpness{.sharpness_factor = 2},
       R"({"op":"random_adjust_sharpness","sharpness_factor":2.0,"p":0.5})"},
      {RandomApply{{Grayscale{}, RandomInvert{}}, 0.8},
       R"({"op":"random_apply","ops":[{"op":"grayscale"},{"op":"random_invert","p":0.5}],)"
       R"("p":0.8})"},
      {RandomChoice{{RandomApply{{Grayscale{}}}}},
       R"({"op":"random_choice",)"
       R"("ops":[{"op":"random_apply","ops":[{"op":"grayscale"}],"p":0.5}]})"},
      {RandAugment{},
       R"({"op":"rand_augment","num_ops":2,"num_magnitude_bins":31,"magnitude":9,"fill":[0,0,0]})"},
      {TrivialAugmentWide{.interpolation = Interpolation::bilinear, .fill = {1, 2, 3}},
       R"({"op":"trivial_augment_wide","num_magnitude_bins":31,"interpolation":"bilinear",)"
       R"("fill":[1,2,3]})"},
      {AutoAugment{AutoAugmentPolicy::svhn},
       R"({"op":"auto_augment","policy":"svhn","fill":[0,0,0]})"},
      {AugMix{.interpolation = Interpolation::nearest},
       R"({"op":"aug_mix","severity":3,"mixture_width":3,"chain_depth":-1,"alpha":1.0,)"
       R"("all_ops":true,"interpolation":"nearest","fill":[0,0,0]})"},
      {ThreeAugment{}, R"({"op":"three_augment"})"},
  };
  return all;
}

TEST(PixelOperations, AreWrittenAndReadAlike) {
  for (const auto& [operation, json] : written()) {
    EXPECT_EQ(operation.to_json(), json);
    EXPECT_EQ(operations_of(std::string(R"([{"op": "center_crop"}, )") + json + "]").back(),
              operation);
  }
}

TEST(PixelOperations, RunInRecipes) {
  const testing::Bytes encoded = testing::encode(testing::noise(40, 30, 5), {});
  Recipe recipe{{33, 21}, {CenterCrop{}}};
  for (const auto& [operation, json] : written()) recipe.ops.push_back(operation);
  testing::Maker maker(recipe);
  testing::Maker plain({{33, 21}, {CenterCrop{}}});
  for (std::uint64_t position = 0; position < 20; ++position) {
    Random random(1, position);
    Random same(1, position);
    ASSERT_TRUE(maker.make(encoded, 0, random).is_ok());
    const testing::Image once = maker.image();
    ASSERT_TRUE(maker.make(encoded, 0, same).is_ok());
    EXPECT_EQ(maker.image().pixels, once.pixels) << "a sample is not its seed's";
    ASSERT_TRUE(plain.make(encoded, 0, same).is_ok());
    EXPECT_NE(maker.image().pixels, plain.image().pixels);
  }
}

TEST(PixelOperations, NameWhatIsWrong) {
  struct Wrong {
    const char* op;
    const char* parameters;
    const char* message;
  };
  for (const Wrong& wrong : {
           Wrong{"color_jitter", R"("brightness": [-0.1, 1])",
                 R"("brightness" is [-0.1, 1.0], both must lie in 0.0..1000000.0)"},
           Wrong{"color_jitter", R"("saturation": [1.2, 1.1])",
                 R"("saturation" is [1.2, 1.1], the first must not be above the second)"},
           Wrong{"color_jitter", R"("hue": [-0.6, 0])",
                 R"("hue" is [-0.6, 0.0], both must lie in -0.5..0.5)"},
           Wrong{"random_grayscale", R"("p": 2)", R"("p" is 2.0, must lie in 0.0..1.0)"},
           Wrong{"gaussian_blur", R"("sigma": [1, 2])",
                 R"("kernel_size" is 0, must be in 1..1023)"},
           Wrong{"gaussian_blur", R"("kernel_size": 4)", R"("kernel_size" is 4, must be odd)"},
           Wrong{"gaussian_blur", R"("kernel_size": 3, "sigma": [0, 2])",
                 R"("sigma" is [0.0, 2.0], both must lie in 0.001..1000.0)"},
           Wrong{"random_solarize", R"("p": 1)", R"("threshold" is -1.0, must lie in 0.0..256.0)"},
           Wrong{"random_posterize", R"("bits": 9)", R"("bits" is 9, must be in 0..8)"},
           Wrong{"random_adjust_sharpness", R"("p": 1)",
                 R"("sharpness_factor" is -1.0, must lie in 0.0..1000000.0)"},
           Wrong{"random_apply", R"("p": 1)",
                 R"("ops" is empty, must name at least one operation)"},
           Wrong{"random_apply", R"("ops": [{"op": "random_invert", "p": 2}])",
                 R"(ops[0] (random_invert): "p" is 2.0, must lie in 0.0..1.0)"},
           Wrong{"random_choice", R"("ops": [{"op": "grayscale"}, {"op": "resize"}])",
                 "ops[1] (resize): moves or scales pixels, and only a recipe's list may have it"},
           Wrong{"random_choice", R"("ops": [{"op": "random_horizontal_flip"}])",
                 "ops[0] (random_horizontal_flip): is not an operation on pixels alone, and only a "
                 "recipe's list may have it"},
           Wrong{"rand_augment", R"("num_magnitude_bins": 5, "magnitude": 5)",
                 R"("magnitude" is 5, must be in 0..4)"},
           Wrong{"rand_augment", R"("interpolation": "box")",
                 R"("interpolation" is "box", must be "nearest" or "bilinear" or "bicubic")"},
           Wrong{"trivial_augment_wide", R"("num_magnitude_bins": 1)",
                 R"("num_magnitude_bins" is 1, must be in 2..1000)"},
           Wrong{"auto_augment", R"("policy": "coco")",
                 R"("policy" is "coco", must be "imagenet" or "cifar10" or "svhn")"},
           Wrong{"aug_mix", R"("severity": 11)", R"("severity" is 11, must be in 1..10)"},
           Wrong{"aug_mix", R"("alpha": 0)", R"("alpha" is 0.0, must lie in 0.01..1000.0)"},
       })
    EXPECT_EQ(why_no_list(std::string(R"([{"op": "center_crop"}, {"op": ")") + wrong.op + "\", " +
                          wrong.parameters + "}]"),
              std::string("train.json: ops[1] (") + wrong.op + "): " + wrong.message);
}

}  // namespace
}  // namespace millrace
