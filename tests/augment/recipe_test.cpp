// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <millrace/recipe.h>

#include <limits>
#include <string>

namespace millrace {
namespace {

/// The message with which a recipe's text is refused.
std::string why_not(const std::string& json) {
  try {
    (void)Recipe::from_json(json, "recipe train.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "accepted";
}

TEST(Recipe, UsualOnes) {
  EXPECT_EQ(Recipe::train(), Recipe{});
  EXPECT_EQ(Recipe::train(160).output, (Size{160, 160}));
  EXPECT_EQ(std::get<CenterCrop>(Recipe::eval().crop).resize, 256);
  EXPECT_EQ(std::get<CenterCrop>(Recipe::eval(160).crop).resize, 183);
  EXPECT_EQ(Recipe::eval().flip, 0);
  EXPECT_THROW(Recipe::train(0), Error);
  EXPECT_THROW(Recipe::eval(1'000'000'000), Error);
}

TEST(Recipe, ComesThroughJson) {
  for (const Recipe& recipe :
       {Recipe::train(160), Recipe::eval(),
        Recipe{{300, 200}, RandomResizedCrop{{0.1, 0.7}, {0.3, 1.0 / 3}}, 0.125}})
    EXPECT_EQ(Recipe::from_json(recipe.to_json()), recipe) << recipe.to_json();
}

TEST(Recipe, ReadsWhatTheHeaderShows) {
  const Recipe random = Recipe::from_json(
      R"({"output": [200, 100], "crop": {"kind": "random_resized", "scale": [0.08, 1], "ratio": [0.75, 1.3333]}, "flip": 0.25})");
  EXPECT_EQ(random, (Recipe{{200, 100}, RandomResizedCrop{{0.08, 1}, {0.75, 1.3333}}, 0.25}));
  const Recipe center = Recipe::from_json(
      R"({"output": [224, 224], "crop": {"kind": "center", "resize": 232}, "flip": 0})");
  EXPECT_EQ(center, (Recipe{{224, 224}, CenterCrop{232}, 0}));
  EXPECT_EQ(Recipe::from_json("{}"), Recipe{});
  EXPECT_EQ(Recipe::from_json(R"({"crop": {"kind": "center"}})").crop,
            (decltype(Recipe::crop){CenterCrop{}}));
}

TEST(Recipe, NamesWhatIsWrong) {
  EXPECT_EQ(why_not(R"({"flip": 1.5})"), R"(recipe train.json: "flip" is 1.5, must lie in 0..1)");
  EXPECT_EQ(why_not(R"({"flip": "often"})"),
            R"(recipe train.json: "flip" is "often", must be a number)");
  EXPECT_EQ(
      why_not(R"({"flop": 1})"),
      R"(recipe train.json: unknown key "flop"; there are "output", "crop", "flip", "flip_on")");
  EXPECT_EQ(why_not(R"({"output": 224})"),
            R"(recipe train.json: "output" is 224, must be two integers, [width, height])");
  EXPECT_EQ(why_not(R"({"output": [224, 2.5]})"),
            R"(recipe train.json: "output" is 2.5, must be two integers, [width, height])");
  EXPECT_EQ(why_not(R"({"output": [0, 224]})"),
            R"(recipe train.json: "output" is 0, must be in 1..16384)");
  EXPECT_EQ(why_not(R"({"output": [99999999999999999999, 224]})"),
            R"(recipe train.json: "output" is 1e+20, must be two integers, [width, height])");
  EXPECT_EQ(why_not(R"({"crop": "center"})"),
            R"(recipe train.json: "crop" must be an object in { })");
  EXPECT_EQ(why_not(R"({"crop": {"resize": 256}})"),
            R"(recipe train.json: "crop.kind" is missing; it is "random_resized" or "center")");
  EXPECT_EQ(why_not(R"({"crop": {"kind": "corner"}})"),
            R"(recipe train.json: "crop.kind" is "corner", must be "random_resized" or "center")");
  EXPECT_EQ(why_not(R"({"crop": {"kind": "center", "scale": [0.5, 1]}})"),
            R"(recipe train.json: unknown key "crop.scale"; there are "kind", "resize")");
  EXPECT_EQ(why_not(R"({"crop": {"kind": "center", "resize": 0}})"),
            R"(recipe train.json: "crop.resize" is 0, must be in 1..16384)");
  EXPECT_EQ(why_not(R"({"crop": {"kind": "random_resized", "scale": [0.5, 1.5]}})"),
            R"(recipe train.json: "crop.scale" is [0.5, 1.5], both must lie in 0.0..1.0)");
  EXPECT_EQ(why_not(R"({"crop": {"kind": "random_resized", "scale": [0, 0]}})"),
            R"(recipe train.json: "crop.scale" is [0, 0], the second must be above 0)");
  EXPECT_EQ(
      why_not(R"({"crop": {"kind": "random_resized", "ratio": [2, 1]}})"),
      R"(recipe train.json: "crop.ratio" is [2.0, 1.0], the first must not be above the second)");
  EXPECT_EQ(why_not(R"({"crop": {"kind": "random_resized", "ratio": [0, 1]}})"),
            R"(recipe train.json: "crop.ratio" is [0.0, 1.0], both must lie in 0.001..1000.0)");
  EXPECT_EQ(why_not("[]"), "recipe train.json: the recipe must be an object in { }");
  EXPECT_EQ(why_not("{\"flip\": \n 1,,}").substr(0, 38), "recipe train.json: is not valid JSON: ");
  EXPECT_NE(why_not("{\"flip\": \n 1,,}").find("line 2"), std::string::npos);
}

// A state to resume from names the recipe by its text, which thus must not change where nothing
// else does.
TEST(Recipe, SaysWhereItFlipsOnlyWhereThatIsTheDevice) {
  Recipe recipe{{200, 100}, CenterCrop{232}, 0.5};
  EXPECT_EQ(recipe.to_json(),
            R"({"output":[200,100],"crop":{"kind":"center","resize":232},"flip":0.5})");
  recipe.flip_on = FlipOn::device;
  EXPECT_EQ(
      recipe.to_json(),
      R"({"output":[200,100],"crop":{"kind":"center","resize":232},"flip":0.5,"flip_on":"device"})");
  EXPECT_EQ(Recipe::from_json(recipe.to_json()), recipe);
  EXPECT_EQ(Recipe::from_json(R"({"flip_on": "worker"})"), Recipe{});
  EXPECT_EQ(why_not(R"({"flip_on": "gpu"})"),
            R"(recipe train.json: "flip_on" is "gpu", must be "worker" or "device")");
}

TEST(Recipe, ValidateRefusesWhatIsNoNumber) {
  Recipe recipe;
  recipe.flip = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(recipe.validate(), Error);
  recipe = {};
  recipe.crop = RandomResizedCrop{{0.1, std::numeric_limits<double>::infinity()}, {1, 1}};
  EXPECT_THROW(recipe.validate(), Error);
}

}  // namespace
}  // namespace millrace
