// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <millrace/image_transform.h>

#include "support/recipe_text.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using testing::why_not;

/// Returns the message for a recipe with these targets, and these operations if given.
std::string why_no_targets(const std::string& targets, const std::string& ops = "") {
  return why_not(R"({"targets": )" + targets + (ops.empty() ? "" : R"(, "ops": )" + ops) + "}");
}

TEST(TargetParameters, ComeBackFromJson) {
  Recipe recipe;
  EXPECT_THAT(recipe.to_json(), ::testing::Not(HasSubstr("targets")));
  recipe.targets = {
      {"mask", MaskTarget{.dtype = DType::uint16, .fill = 300}},
      {"boxes", BoxesTarget{7, BoxFormat::cxcywh, CoordinateUnit::fractions, 2.5, 9}},
      {"joints", KeypointsTarget{.points = 17, .values = 3, .of = "boxes"}},
      {"point", KeypointsTarget{.max_length = 2, .unit = CoordinateUnit::fractions}},
      {"labels", ValuesTarget{.of = "boxes"}},
      {"hot", ValuesTarget{.dtype = DType::float32, .shape = {80}}},
      {"words", ValuesTarget{.dtype = DType::uint16, .shape = {2, 3}, .max_length = 12}}};
  const std::string json = recipe.to_json();
  EXPECT_THAT(json, HasSubstr(R"("labels":{"is":"values","max_length":0,"of":"boxes"})"));
  EXPECT_EQ(Recipe::from_json(json), recipe);
  EXPECT_NE(Recipe::from_json(json), Recipe());
  EXPECT_NE(image_transform(recipe)->fingerprint(), image_transform(Recipe())->fingerprint());
  recipe.targets.clear();
  EXPECT_EQ(Recipe::from_json(recipe.to_json()), recipe);
  EXPECT_EQ(image_transform(recipe)->spec().fields().size(), 1U);
}

TEST(TargetParameters, MakeTheFieldsOfSamples) {
  const Recipe recipe = Recipe::from_json(R"({"output": [30, 20], "targets": {
      "labels": {"is": "values", "of": "boxes"},
      "mask": {"is": "mask"},
      "boxes": {"is": "boxes", "max_length": 9},
      "joints": {"is": "keypoints", "points": 5, "of": "boxes"},
      "text": {"is": "values", "dtype": "uint8", "max_length": 40}}})");
  const auto transform = image_transform(recipe);
  const auto& fields = transform->spec().fields();
  const auto expect = [&](std::size_t n, const FieldSpec& field) { EXPECT_EQ(fields[n], field); };
  expect(1, {"labels", DType::int64, {9}, true, {}, {}, {}});
  expect(2, {"mask", DType::uint8, {20, 30}, false, {}, {}, {}});
  expect(3, {"boxes", DType::float32, {9, 4}, true, {}, {}, {}});
  expect(4, {"joints", DType::float32, {9, 5, 2}, true, {}, {}, {}});
  expect(5, {"text", DType::uint8, {40}, true, {}, {}, {}});
}

TEST(TargetParameters, NameWhatIsWrong) {
  EXPECT_EQ(why_no_targets("[]"),
            "train.json: \"targets\" must be an object in { }, with a member for each field");
  EXPECT_EQ(why_no_targets(R"({"mask": 1})"),
            "train.json: targets: \"mask\": the target must be an object in { }");
  EXPECT_EQ(why_no_targets(R"({"mask": {}})"),
            "train.json: targets: \"mask\": \"is\" is missing, must be \"mask\" or \"boxes\" or "
            "\"keypoints\" or \"values\" or \"stored\"");
  EXPECT_EQ(
      why_no_targets(R"({"mask": {"is": "picture"}})"),
      "train.json: targets: \"mask\": \"is\" is \"picture\", must be \"mask\" or \"boxes\" or "
      "\"keypoints\" or \"values\" or \"stored\"");
  EXPECT_EQ(why_no_targets(R"({"mask": {"is": "mask", "fill": 256}})"),
            "train.json: targets: \"mask\": \"fill\" is 256, must be in 0..255");
  EXPECT_EQ(why_no_targets(R"({"mask": {"is": "mask", "format": "xyxy"}})"),
            "train.json: targets: \"mask\": unknown key \"format\"; the known keys are \"is\", "
            "\"dtype\", "
            "\"fill\"");
  EXPECT_EQ(
      why_no_targets(R"({"mask": {"is": "mask", "dtype": "int64"}})"),
      "train.json: targets: \"mask\": \"dtype\" is \"int64\", must be \"uint8\" or \"uint16\"");
  EXPECT_EQ(
      why_no_targets(R"({"labels": {"is": "values", "of": "boxes"}})"),
      "train.json: targets: \"labels\": \"of\" is \"boxes\", must name boxes among the targets");
  EXPECT_EQ(why_no_targets(
                R"({"b": {"is": "boxes"}, "l": {"is": "values", "of": "b", "max_length": 2}})"),
            "train.json: targets: \"l\": \"max_length\" is 2; leave it out, since the boxes that "
            "these are "
            "\"of\" have one");
  EXPECT_EQ(why_no_targets(R"({"image": {"is": "mask"}})"),
            "train.json: targets: \"image\": \"image\" is the image's own field");
  EXPECT_EQ(why_no_targets(R"({"v": {"is": "values", "shape": [2, 0]}})"),
            "train.json: targets: \"v\": \"shape\" is [2,0], must be in 1..16777216");
  Recipe twice;
  twice.targets.push_back(twice.targets.front());
  EXPECT_THROW(twice.validate(), Error);
}

TEST(TargetParameters, RefuseWhatTheyCannotFollow) {
  const std::string boxes = R"({"boxes": {"is": "boxes"}})";
  const std::string mask = R"({"mask": {"is": "mask"}})";
  const std::string policies = R"([{"op": "random_resized_crop"}, {"op": "random_apply", "ops": [)"
                               R"({"op": "trivial_augment_wide"}]}])";
  EXPECT_EQ(why_no_targets(mask, policies),
            "train.json: ops[1] (random_apply) moves pixels, and masks, boxes and keypoints cannot "
            "follow it");
  const std::string mirrored =
      R"([{"op": "random_crop", "padding": 4, "padding_mode": "reflect"}])";
  EXPECT_EQ(why_no_targets(mask, mirrored), "accepted");
  EXPECT_EQ(
      why_no_targets(boxes, mirrored),
      "train.json: ops[0] (random_crop) mirrors or repeats the image in a border, where boxes "
      "and keypoints cannot follow; take \"padding_mode\": \"constant\"");
  EXPECT_EQ(why_no_targets(boxes, R"([{"op": "random_resized_crop"},
                                      {"op": "random_horizontal_flip", "on": "device"}])"),
            "train.json: ops[1] (random_horizontal_flip) flips images on the device, where masks, "
            "boxes and keypoints do not follow");
  EXPECT_EQ(why_no_targets(boxes, R"([{"op": "five_crop"}])"),
            "train.json: the operations make 5 images of a sample, but masks, boxes and keypoints "
            "need one image");
  const std::string mix = R"(, "mix": {"classes": 3, "mixup": 1}})";
  EXPECT_EQ(
      why_not(R"({"targets": {"label": {"is": "values"}, "mask": {"is": "mask"}})" + mix),
      "train.json: \"mix\" mixes images and labels, and cannot mix masks, boxes and keypoints");
  EXPECT_EQ(why_not(R"({"targets": {"label": {"is": "values", "dtype": "float32"}})" + mix),
            "train.json: \"mix\" needs the target \"label\", an int64");
  EXPECT_EQ(why_not(R"({"targets": {"hot": {"is": "values"}, "label": {"is": "values"}})" + mix),
            "accepted");
}

}  // namespace
}  // namespace millrace
