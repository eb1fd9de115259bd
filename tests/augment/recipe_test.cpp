// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/recipe.h>

#include <string>

#include "ops/operations.h"
#include "support/recipe_text.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::why_no_list;
using testing::why_not;

TEST(Recipe, UsualOnes) {
  EXPECT_EQ(Recipe::train(), Recipe{});
  EXPECT_EQ(Recipe::train(160).output, (Size{160, 160}));
  EXPECT_EQ(Recipe::eval(), (Recipe{{224, 224}, {Resize{256}, CenterCrop{}}}));
  EXPECT_EQ(Recipe::eval(160), (Recipe{{160, 160}, {Resize{183}, CenterCrop{}}}));
  EXPECT_THROW(Recipe::train(0), Error);
  EXPECT_THROW(Recipe::eval(1'000'000'000), Error);
}

TEST(Recipe, ComesThroughJson) {
  for (const Recipe& recipe : {Recipe::train(160), Recipe::eval(),
                               Recipe{{300, 200}, {RandomResizedCrop{{0.1, 0.7}, {0.3, 1.0 / 3}}}}})
    EXPECT_EQ(Recipe::from_json(recipe.to_json()), recipe) << recipe.to_json();
  EXPECT_NE(Recipe::train(160), Recipe::train(161));
  EXPECT_NE(Recipe::train(160), Recipe::eval(160));
}

TEST(Recipe, ReadsWhatTheHeaderShows) {
  const Recipe random = Recipe::from_json(
      R"({"output": [200, 100],
          "ops": [{"op": "random_resized_crop", "scale": [0.08, 1], "ratio": [0.75, 1.3333]},
                  {"op": "random_horizontal_flip", "p": 0.25}]})");
  EXPECT_EQ(random,
            (Recipe{{200, 100},
                    {RandomResizedCrop{{0.08, 1}, {0.75, 1.3333}}, RandomHorizontalFlip{0.25}}}));
  const Recipe center = Recipe::from_json(
      R"({"output": [224, 224], "ops": [{"op": "resize", "size": 232}, {"op": "center_crop"}]})");
  EXPECT_EQ(center, (Recipe{{224, 224}, {Resize{232}, CenterCrop{}}}));
  EXPECT_EQ(Recipe::from_json("{}"), Recipe{});
}

// A state to resume from identifies the recipe by its text. So the text must not change while the
// meaning stays.
TEST(Recipe, IsWrittenInOneWay) {
  EXPECT_EQ(Recipe::train().to_json(),
            R"({"output":[224,224],"like":"pillow-13","ops":[{"op":"random_resized_crop",)"
            R"("scale":[0.08,1.0],"ratio":[0.75,1.3333333333333333]},)"
            R"({"op":"random_horizontal_flip","p":0.5}]})");
  EXPECT_EQ(Recipe::eval(112).to_json(),
            R"({"output":[112,112],"like":"pillow-13",)"
            R"("ops":[{"op":"resize","size":128},{"op":"center_crop"}]})");
}

TEST(Recipe, NamesThePillowWhosePixelsItMakes) {
  Recipe before = Recipe::eval();
  before.like = Like::pillow_12;
  EXPECT_THAT(before.to_json(), HasSubstr(R"("like":"pillow-12")"));
  EXPECT_EQ(Recipe::from_json(before.to_json()), before);
  EXPECT_NE(before, Recipe::eval());
  EXPECT_EQ(Recipe::from_json(R"({"output": [224, 224]})").like, Like::pillow_13);
  EXPECT_EQ(why_not(R"({"like": "pillow-11"})"),
            R"(train.json: "like" is "pillow-11", must be "pillow-13" or "pillow-12")");
  before.like = static_cast<Like>(2);
  EXPECT_THROW(before.validate(), Error);
}

TEST(Recipe, SaysWhetherResolutionIsReduced) {
  Recipe reduced = Recipe::train();
  reduced.resolution = Resolution::reduced;
  EXPECT_THAT(reduced.to_json(), HasSubstr(R"("resolution":"reduced")"));
  EXPECT_EQ(Recipe::from_json(reduced.to_json()), reduced);
  EXPECT_NE(reduced, Recipe::train());
  EXPECT_EQ(Recipe::from_json(R"({"resolution": "exact"})").resolution, Resolution::exact);
  EXPECT_EQ(why_not(R"({"resolution": "half"})"),
            R"(train.json: "resolution" is "half", must be "exact" or "reduced")");
  reduced.resolution = static_cast<Resolution>(2);
  EXPECT_THROW(reduced.validate(), Error);
}

TEST(Recipe, NamesWhatIsWrong) {
  EXPECT_EQ(why_not(R"({"flop": 1})"),
            R"(train.json: unknown key "flop"; the known keys are "output", "like", "resolution", )"
            R"("decode_on", "device_share", "ops", "targets", "views", "images", "mix")");
  EXPECT_EQ(why_not(R"({"output": 224})"),
            R"(train.json: "output" is 224, must be two integers, [width, height])");
  EXPECT_EQ(why_not(R"({"output": [224, 2.5]})"),
            R"(train.json: "output" is 2.5, must be two integers, [width, height])");
  EXPECT_EQ(why_not(R"({"output": [0, 224]})"),
            R"(train.json: "output" is 0, must be in 1..16384)");
  EXPECT_EQ(why_not(R"({"output": [99999999999999999999, 224]})"),
            R"(train.json: "output" is 1e+20, must be two integers, [width, height])");
  EXPECT_EQ(why_not("[]"), "train.json: the recipe must be an object in { }");
  EXPECT_THAT(why_not("{\"output\": \n 1,,}"), StartsWith("train.json: is not valid JSON: "));
  EXPECT_THAT(why_not("{\"output\": \n 1,,}"), HasSubstr("line 2"));
}

TEST(Recipe, NamesTheOperationThatIsNone) {
  std::string names;
  for (const OperationRow& row : operations)
    names += (names.empty() ? "\"" : ", \"") + std::string(row.name) + '"';
  EXPECT_EQ(why_no_list(R"({"op": "center_crop"})"),
            R"(train.json: "ops" must be a list of operations in [ ])");
  EXPECT_EQ(why_no_list(R"(["center_crop"])"),
            "train.json: ops[0]: the operation must be an object in { }");
  EXPECT_EQ(why_no_list(R"([{"op": "center_crop"}, {"p": 0.5}])"),
            "train.json: ops[1]: \"op\" is null, must be one of " + names);
  EXPECT_EQ(why_no_list(R"([{"op": "corner_crop"}])"),
            "train.json: ops[0]: \"op\" is \"corner_crop\", must be one of " + names);
  EXPECT_EQ(why_no_list(R"([{"op": 7}])"),
            "train.json: ops[0]: \"op\" is 7, must be one of " + names);
}

TEST(Recipe, SaysWhatBecameOfTheFormBefore) {
  for (const char* key : {"crop", "flip", "flip_on"})
    EXPECT_EQ(why_not("{\"output\": [224, 224], \"" + std::string(key) + "\": 0}"),
              "train.json: \"" + std::string(key) +
                  "\" is no longer a key; a recipe is a list of operations now, as " +
                  Recipe::train().to_json());
}

}  // namespace
}  // namespace millrace
