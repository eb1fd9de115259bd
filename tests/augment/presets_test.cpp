// SPDX-License-Identifier: Apache-2.0
//
// The presets by name.
#include <gmock/gmock.h>
#include <millrace/error.h>
#include <millrace/recipe.h>

#include <string>

namespace millrace {
namespace {

using ::testing::HasSubstr;

TEST(Presets, AreSoundRecipesOfAnySize) {
  EXPECT_EQ(Recipe::presets().size(), 12U);
  for (const auto& [name, what] : Recipe::presets()) {
    SCOPED_TRACE(name);
    EXPECT_FALSE(std::string(what).empty());
    const Recipe own = Recipe::preset(name);
    EXPECT_GE(own.output.width, 176);
    EXPECT_EQ(Recipe::from_json(own.to_json()), own);
    EXPECT_EQ(Recipe::preset(name, 96).output, (Size{96, 96}));
  }
}

TEST(Presets, TrainAndEvalAreTheShortForms) {
  EXPECT_EQ(Recipe::preset("train"), Recipe());
  EXPECT_EQ(Recipe::preset("train", 64), Recipe::train(64));
  EXPECT_EQ(Recipe::preset("eval"), (Recipe{{224, 224}, {Resize{256}, CenterCrop{}}}));
  EXPECT_EQ(Recipe::eval(112), (Recipe{{112, 112}, {Resize{128}, CenterCrop{}}}));
}

TEST(Presets, SayWhatTheirModelsWereTrainedWith) {
  const std::string swin = Recipe::preset("swin").to_json();
  for (const char* part :
       {R"("op":"random_resized_crop")", R"("interpolation":"bicubic")",
        R"("op":"trivial_augment_wide")", R"("op":"random_erasing","p":0.25)", R"("mixup":0.8)"})
    EXPECT_THAT(swin, HasSubstr(part));
  EXPECT_EQ(Recipe::preset("resnet").output, (Size{176, 176}));
  EXPECT_THAT(Recipe::preset("resnet-eval").to_json(), HasSubstr(R"("size":232)"));
  EXPECT_THAT(Recipe::preset("resnet-eval", 112).to_json(), HasSubstr(R"("size":116)"));
  EXPECT_FALSE(Recipe::preset("deit3-simple").mix);
}

TEST(Presets, OfAnotherNameAreAnError) {
  try {
    (void)Recipe::preset("resnt");
    FAIL() << "there is none";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_THAT(error.what(), HasSubstr("\"resnt\"; there are train, eval, resnet, resnet-eval"));
  }
  EXPECT_THROW((void)Recipe::preset("train", 0), Error);
}

}  // namespace
}  // namespace millrace
