// SPDX-License-Identifier: Apache-2.0
//
// Further images of a record from one decode.
#include <gtest/gtest.h>
#include <millrace/colour_operations.h>
#include <millrace/host_device.h>
#include <millrace/pipeline.h>

#include "augment/jpeg_dataset.h"
#include "support/recipe_text.h"
#include "support/sample_maker.h"
#include "support/shared_data.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::encode;
using testing::Maker;
using testing::noise;
using testing::why_not;

/// The crops of DINO at half of their sizes.
Recipe multi_crop() {
  Recipe recipe{{112, 112},
                {RandomResizedCrop{.scale = {0.4, 1}}, RandomHorizontalFlip{}, ColorJitter{}}};
  recipe.views = {
      {"second",
       1,
       {112, 112},
       {RandomResizedCrop{.scale = {0.4, 1}}, RandomSolarize{.threshold = 128}}},
      {"local", 6, {48, 40}, {RandomResizedCrop{.scale = {0.05, 0.4}}, RandomHorizontalFlip{}}},
  };
  return recipe;
}

/// Makes all fields of a sample.
class Views {
 public:
  explicit Views(const Recipe& recipe)
      : transform_(image_transform(recipe)), worker_(transform_->make_worker()) {
    for (const FieldSpec& field : transform_->spec().fields()) {
      fields_.emplace_back(field.shape.elements() * size_of(field.dtype), std::byte{0xA5});
      places_.push_back({fields_.back().data(), field.dtype, field.shape});
    }
  }
  Status make(const Bytes& encoded, Random& random) {
    const std::int64_t label = 5;
    const std::array fields{RecordField{"image", encoded},
                            RecordField{"label", std::as_bytes(std::span(&label, 1))}};
    Sample sample(transform_->spec(), places_, stage_ns_);
    return worker_->make(Record(7, fields), random, sample);
  }
  const Tensor& operator[](std::size_t field) const { return places_[field]; }

 private:
  std::shared_ptr<const Transform> transform_;
  std::unique_ptr<TransformWorker> worker_;
  std::vector<std::vector<std::byte>> fields_;
  std::vector<Tensor> places_;
  std::array<std::uint64_t, 2> stage_ns_{};
};

/// Compares a sample's images with those that each list of operations makes alone.
void expect_each_alone(const Recipe& recipe, const Bytes& encoded, std::uint64_t position) {
  Random random(3, position);
  Views views(recipe);
  ASSERT_TRUE(views.make(encoded, random).is_ok());

  Random same(3, position);
  const std::uint64_t seed = Random(same).bits64();
  Recipe without = recipe;
  without.views.clear();
  Maker first(without);
  ASSERT_TRUE(first.make(encoded, 5, same).is_ok());
  EXPECT_TRUE(std::ranges::equal(views[0].as<std::uint8_t>(), first.image().pixels));
  EXPECT_EQ(views[1].as<std::int64_t>()[0], 5);
  EXPECT_EQ(random.bits64(), same.bits64());
  std::uint32_t stream = 0;
  for (std::size_t field = 2; field < 2 + recipe.views.size(); ++field) {
    const View& view = recipe.views[field - 2];
    Maker alone({view.output, view.ops, recipe.like, recipe.resolution});
    for (int number = 0; number < view.count; ++number) {
      Random own(seed, ++stream);
      ASSERT_TRUE(alone.make(encoded, 5, own).is_ok());
      const std::vector<std::uint8_t> expected = alone.image().pixels;
      EXPECT_TRUE(std::ranges::equal(
          views[field].as<std::uint8_t>().subspan(
              static_cast<std::size_t>(number) * expected.size(), expected.size()),
          expected))
          << view.field << ' ' << number;
    }
  }
}

TEST(Views, AreThoseOfTheirOperationsAlone) {
  for (std::uint64_t position = 0; position < 20; ++position) {
    SCOPED_TRACE(position);
    const int side = 40 + 31 * static_cast<int>(position % 7);
    expect_each_alone(multi_crop(), encode(noise(side, 130, static_cast<unsigned>(position)), {}),
                      position);
  }
}

TEST(Views, OfPhotographsAreThoseOfTheirOperationsAlone) {
  MILLRACE_NEEDS_SHARED("data/photos");
  std::uint64_t position = 0;
  for (const auto& path : testing::jpeg_files(testing::shared_dir() / "data/photos")) {
    if (++position > 12) break;
    SCOPED_TRACE(path);
    expect_each_alone(multi_crop(), testing::read_file(path), position);
  }
}

TEST(Views, AreTheSameForAnyNumberOfWorkers) {
  const auto batches = [](unsigned workers) {
    std::vector<std::uint8_t> all;
    Pipeline pipeline(
        std::make_shared<testing::JpegDataset>(), image_transform(multi_crop()),
        std::make_shared<HostDevice>(),
        {.batch_size = 6, .epochs = 2, .runtime = make_runtime({.workers = workers})});
    while (const Batch batch = pipeline.next()) {
      EXPECT_EQ(batch["second"].shape, (Shape{6, 112, 112, 3}));
      EXPECT_EQ(batch["local"].shape, (Shape{6, 6, 40, 48, 3}));
      for (const char* field : {"image", "second", "local"}) {
        const auto pixels = batch[field].as<std::uint8_t>();
        all.insert(all.end(), pixels.begin(), pixels.end());
      }
    }
    return all;
  };
  const std::vector<std::uint8_t> by_one = batches(1);
  EXPECT_EQ(by_one.size(), 60U * 3 * (2 * 112 * 112 + 6 * 40 * 48));
  EXPECT_EQ(batches(4), by_one);
}

TEST(Views, OfAnImageThatOneOfThemCannotTakeAreABadRecord) {
  Recipe recipe{{20, 20}, {CenterCrop{}}};
  recipe.views = {{"corner", 1, {31, 20}, {RandomCrop{}}}};
  Random random(1, 1);
  EXPECT_EQ(Views(recipe).make(encode(noise(30, 20, 2), {}), random).reason(),
            "random_crop cannot take 31 x 20 of an image of 30 x 20; \"pad_if_needed\" would "
            "make it larger");
}

TEST(Views, ComeThroughJson) {
  const Recipe recipe = multi_crop();
  EXPECT_EQ(Recipe::from_json(recipe.to_json()), recipe);
  const Recipe read = Recipe::from_json(
      R"({"views": {"local": {"count": 6, "ops": [{"op": "random_resized_crop", "size": 96}]}}})");
  ASSERT_EQ(read.views.size(), 1U);
  EXPECT_EQ(read.views[0], (View{"local", 6, {96, 96}, {RandomResizedCrop{}}}));
  EXPECT_EQ(Recipe::from_json("{}").to_json().find("views"), std::string::npos);
}

TEST(Views, AreRefusedWithTheirNames) {
  EXPECT_EQ(why_not(R"({"views": {"image": {}}})"),
            "train.json: views: \"image\": \"image\" is the recipe's own image");
  EXPECT_EQ(why_not(R"({"views": {"label": {}}})"),
            "train.json: views: \"label\": the field comes twice");
  EXPECT_EQ(why_not(R"({"views": {"local": {"count": 65}}})"),
            "train.json: views: \"local\": \"count\" is 65, must be in 1..64");
  EXPECT_EQ(why_not(R"({"views": {"local": {"crops": 6}}})"),
            "train.json: views: \"local\": unknown key \"crops\"; the known keys are \"count\", "
            "\"output\", "
            "\"ops\"");
  EXPECT_EQ(
      why_not(R"({"views": {"local": {"output": [96, 96],
                       "ops": [{"op": "random_resized_crop", "size": 64}]}}})"),
      "train.json: views: \"local\": ops[0] (random_resized_crop) has \"size\" 64 and the view "
      "\"output\" [96,96]; leave one out");
  EXPECT_EQ(why_not(R"({"views": {"local": {"ops": [{"op": "five_crop"}]}}})"),
            "train.json: views: \"local\": the operations make 5 images; a view's operations make "
            "one, \"count\" times");
  EXPECT_EQ(
      why_not(R"({"views": {"local": {"ops": [{"op": "random_resized_crop"},
                       {"op": "random_horizontal_flip", "on": "device"}]}}})"),
      "train.json: views: \"local\": ops[1] (random_horizontal_flip) runs on the device, which "
      "converts the field \"image\" only");
  EXPECT_EQ(why_not(R"({"views": {"local": {}}, "mix": {"classes": 3, "mixup": 0.2}})"),
            "train.json: \"mix\" mixes one image of a sample, and \"views\" makes more");
  EXPECT_EQ(
      why_not(R"({"views": {"local": {}}, "targets": {"boxes": {"is": "boxes"}}})"),
      "train.json: \"views\" makes several images of a sample, but masks, boxes and keypoints "
      "need one image");
  EXPECT_EQ(why_not(R"({"views": [{}]})"),
            "train.json: \"views\" must be an object in { }, with a member for each field");
}

}  // namespace
}  // namespace millrace
