// SPDX-License-Identifier: Apache-2.0
//
// Several encoded images of a record through one recipe.
#include <gmock/gmock.h>
#include <millrace/colour_operations.h>
#include <millrace/image_transform.h>
#include <millrace/warp_operations.h>

#include <cmath>
#include <cstdlib>

#include "augment/orientations.h"
#include "augment/targets/target_sample.h"
#include "support/recipe_text.h"
#include "support/sample_maker.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::encode;
using testing::error_of;
using ::testing::HasSubstr;
using testing::Image;
using testing::Maker;
using testing::noise;
using testing::TargetSample;
using testing::why_not;

/// The usual training recipe with every kind of operation that draws, for pairs.
Recipe pair_recipe(Draws draws) {
  Recipe recipe{{64, 48},
                {ExifTranspose{}, RandomResizedCrop{}, RandomHorizontalFlip{}, RandomVerticalFlip{},
                 RandomAffine{.degrees = {-20, 20}}, ColorJitter{.brightness = {0.5, 1.5}}}};
  recipe.images = {{"second", draws}};
  return recipe;
}

/// Makes samples of one record after the other.
class Pairs {
 public:
  explicit Pairs(const Recipe& recipe)
      : transform_(image_transform(recipe)),
        worker_(transform_->make_worker()),
        memory_(transform_->spec()) {}

  Status make(const Bytes& first, const Bytes& second, Random& random) {
    const std::int64_t label = 5;
    const std::array fields{RecordField{"image", first}, RecordField{"second", second},
                            RecordField{"third", second},
                            RecordField{"label", std::as_bytes(std::span(&label, 1))}};
    Sample sample = memory_.sample();
    return worker_->make(Record(7, fields), random, sample);
  }
  std::vector<std::uint8_t> pixels(std::string_view field) const {
    const auto all = memory_.all<std::uint8_t>(field);
    return {all.begin(), all.end()};
  }
  const SampleSpec& spec() const { return transform_->spec(); }

 private:
  std::shared_ptr<const Transform> transform_;
  std::unique_ptr<TransformWorker> worker_;
  TargetSample memory_;
};

/// A picture whose colours say the place, in fractions of its sides.
Image places(int width, int height) {
  Image image{width, height, 3, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      image.pixels.push_back(static_cast<std::uint8_t>(std::lround(255 * (x + 0.5) / width)));
      image.pixels.push_back(static_cast<std::uint8_t>(std::lround(255 * (y + 0.5) / height)));
      image.pixels.push_back(128);
    }
  return image;
}

Bytes ppm(const Image& image) {
  const std::string head =
      "P6 " + std::to_string(image.width) + " " + std::to_string(image.height) + " 255\n";
  Bytes bytes;
  for (const char letter : head) bytes.push_back(static_cast<std::byte>(letter));
  for (const std::uint8_t value : image.pixels) bytes.push_back(std::byte{value});
  return bytes;
}

int largest_difference(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  EXPECT_EQ(a.size(), b.size());
  int largest = 0;
  for (std::size_t n = 0; n < a.size(); ++n) largest = std::max(largest, std::abs(a[n] - b[n]));
  return largest;
}

TEST(RecordImages, EqualBytesGiveEqualPixelsWithTheSameDraws) {
  const Recipe recipe = pair_recipe(Draws::same);
  Recipe alone = recipe;
  alone.images.clear();
  Pairs pairs(recipe);
  Maker maker(alone);
  for (std::uint64_t position = 0; position < 40; ++position) {
    SCOPED_TRACE(position);
    const int side = 50 + 31 * static_cast<int>(position % 7);
    const Bytes encoded = encode(noise(side, 130, static_cast<unsigned>(position)), {});
    Random random(3, position);
    Random same(3, position);
    ASSERT_TRUE(pairs.make(encoded, encoded, random).is_ok());
    ASSERT_TRUE(maker.make(encoded, 5, same).is_ok());
    EXPECT_EQ(pairs.pixels("image"), maker.image().pixels) << "as without the second image";
    EXPECT_EQ(pairs.pixels("second"), pairs.pixels("image"));
    EXPECT_EQ(random.bits64(), same.bits64());
  }
}

TEST(RecordImages, OwnDrawsAreThoseOfAStreamOfTheirOwn) {
  Recipe recipe = pair_recipe(Draws::own);
  recipe.images = {{"second", Draws::own}, {"third", Draws::own}};
  recipe.views = {{"local", 2, {20, 20}, {RandomResizedCrop{}}}};
  Recipe alone = recipe;
  alone.images.clear();
  alone.views.clear();
  Pairs pairs(recipe);
  Maker maker(alone);
  for (std::uint64_t position = 0; position < 10; ++position) {
    SCOPED_TRACE(position);
    const Bytes first = encode(noise(150, 130, static_cast<unsigned>(position)), {});
    const Bytes second = encode(noise(90, 170, static_cast<unsigned>(position) + 50), {});
    Random random(3, position);
    const std::uint64_t seed = Random(random).bits64();
    ASSERT_TRUE(pairs.make(first, second, random).is_ok());
    Random same(3, position);
    ASSERT_TRUE(maker.make(first, 5, same).is_ok());
    EXPECT_EQ(pairs.pixels("image"), maker.image().pixels);
    EXPECT_EQ(random.bits64(), same.bits64());
    std::uint32_t stream = 2;  // of the views
    for (const char* field : {"second", "third"}) {
      Random own(seed, ++stream);
      ASSERT_TRUE(maker.make(second, 5, own).is_ok());
      EXPECT_EQ(pairs.pixels(field), maker.image().pixels) << field;
    }
    EXPECT_NE(pairs.pixels("second"), pairs.pixels("third"));
  }
}

// All lists of geometric operations, and images whose sides differ by different factors.
TEST(RecordImages, OfOtherSizesShowTheSamePart) {
  const std::vector<std::vector<Operation>> lists{
      {RandomResizedCrop{.scale = {0.2, 1}}, RandomHorizontalFlip{}, RandomVerticalFlip{}},
      {RandomResizedCrop{.scale = {0.2, 1}, .interpolation = Interpolation::bicubic}},
      {RandomResizedCrop{.scale = {0.2, 1}, .interpolation = Interpolation::nearest}},
      {Resize{60}, CenterCrop{}},
      {RandomCrop{}, RandomHorizontalFlip{}},
      {ExifTranspose{}, RandomResizedCrop{.scale = {0.2, 1}}}};
  const Bytes first = ppm(places(240, 180));
  for (const auto& ops : lists) {
    Recipe recipe{{56, 56}, ops};
    recipe.images = {{"second"}};
    Pairs pairs(recipe);
    for (const auto& [width, height] : {std::pair(480, 360), {121, 90}, {200, 301}, {239, 180}}) {
      const Bytes second = ppm(places(width, height));
      for (std::uint64_t position = 0; position < 20; ++position) {
        Random random(3, position);
        ASSERT_TRUE(pairs.make(first, second, random).is_ok());
        // A pixel of the smaller image is up to 255 / 90 levels wide.
        EXPECT_LE(largest_difference(pairs.pixels("image"), pairs.pixels("second")), 3)
            << ops.back().to_json() << " of " << width << " x " << height;
      }
    }
  }
}

// A pixel of the second image is 10 levels wide, so rounding the part to whole pixels would show.
TEST(RecordImages, APartOfASmallerOneBeginsBetweenItsPixels) {
  Recipe recipe{{56, 56}, {RandomResizedCrop{.scale = {0.2, 0.5}}, RandomHorizontalFlip{}}};
  recipe.images = {{"second"}};
  Pairs pairs(recipe);
  for (std::uint64_t position = 0; position < 20; ++position) {
    Random random(3, position);
    ASSERT_TRUE(pairs.make(ppm(places(240, 180)), ppm(places(25, 19)), random).is_ok());
    const std::vector<std::uint8_t> a = pairs.pixels("image");
    const std::vector<std::uint8_t> b = pairs.pixels("second");
    int sum = 0;
    for (std::size_t n = 0; n < a.size(); ++n) sum += std::abs(a[n] - b[n]);
    EXPECT_LT(sum / static_cast<double>(a.size()), 0.6) << "levels on average, " << position;
  }
}

TEST(RecordImages, AreTurnedByTheirOwnOrientation) {
  const Image upright = places(240, 180);
  Recipe recipe{{56, 40}, {ExifTranspose{}, RandomResizedCrop{.scale = {0.2, 1}}}};
  recipe.images = {{"second"}};
  Pairs pairs(recipe);
  const testing::Encoding encoding{
      .name = "4:4:4", .h = {1, 1, 1, 1}, .v = {1, 1, 1, 1}, .quality = 98};
  for (int of_first = 1; of_first <= 8; ++of_first)
    for (int of_second = 1; of_second <= 8; ++of_second) {
      const auto turned = [&](const Image& image, int orientation) {
        return testing::with_orientation(encode(testing::stored_as(image, orientation), encoding),
                                         orientation);
      };
      Random random(3, static_cast<std::uint64_t>(of_first * 8 + of_second));
      ASSERT_TRUE(pairs.make(turned(upright, of_first), turned(places(320, 240), of_second), random)
                      .is_ok());
      EXPECT_LE(largest_difference(pairs.pixels("image"), pairs.pixels("second")), 8)
          << of_first << " and " << of_second;
    }
}

TEST(RecordImages, AreDecodedAtAReducedResolutionOfTheirOwn) {
  Recipe recipe{{40, 40}, {RandomResizedCrop{.scale = {0.6, 1}}, RandomHorizontalFlip{}}};
  recipe.resolution = Resolution::reduced;
  recipe.images = {{"second"}};
  Pairs pairs(recipe);
  const testing::Encoding encoding{
      .name = "4:4:4", .h = {1, 1, 1, 1}, .v = {1, 1, 1, 1}, .quality = 98};
  const Bytes first = encode(places(400, 300), encoding);
  for (const auto& [width, height] : {std::pair(800, 600), {150, 110}, {401, 299}})
    for (std::uint64_t position = 0; position < 10; ++position) {
      Random random(3, position);
      ASSERT_TRUE(pairs.make(first, encode(places(width, height), encoding), random).is_ok());
      EXPECT_LE(largest_difference(pairs.pixels("image"), pairs.pixels("second")), 8)
          << width << " x " << height;
    }
}

TEST(RecordImages, HaveAsManyCropsAsTheImage) {
  Recipe recipe{{20, 16}, {FiveCrop{}, RandomGrayscale{.p = 0.5}}};
  recipe.images = {{"second"}, {"third", Draws::own}};
  Pairs pairs(recipe);
  const Shape crops{5, 16, 20, 3};
  EXPECT_EQ(pairs.spec().fields()[0].shape, crops);
  ASSERT_EQ(pairs.spec().fields().size(), 4U);
  EXPECT_EQ(pairs.spec().fields()[2].name, "second");
  EXPECT_EQ(pairs.spec().fields()[2].shape, crops);
  EXPECT_EQ(pairs.spec().fields()[3].name, "third");
  const Bytes encoded = encode(noise(40, 40, 1), {});
  Random random(1, 1);
  ASSERT_TRUE(pairs.make(encoded, encoded, random).is_ok());
  EXPECT_EQ(pairs.pixels("second"), pairs.pixels("image"));
}

TEST(RecordImages, LeaveTargetsWithTheImage) {
  Recipe recipe{{32, 32}, {RandomResizedCrop{}, RandomAffine{.degrees = {-40, 40}}}};
  recipe.targets = {{"mask", MaskTarget{}}};
  const Image image = noise(50, 40, 3);
  const std::vector<std::uint8_t> mask(image.pixels.begin(), image.pixels.begin() + 50 * 40);
  const Bytes encoded = encode(image, {});
  const std::array fields{RecordField{"image", encoded}, RecordField{"second", encoded},
                          RecordField{"mask", std::as_bytes(std::span(mask))}};
  const auto mask_of = [&](const Recipe& made) {
    const auto transform = image_transform(made);
    TargetSample memory(transform->spec());
    Sample sample = memory.sample();
    Random random(4, 2);
    EXPECT_TRUE(transform->make_worker()->make(Record(0, fields), random, sample).is_ok());
    const auto all = memory.all<std::uint8_t>("mask");
    return std::vector<std::uint8_t>(all.begin(), all.end());
  };
  const std::vector<std::uint8_t> alone = mask_of(recipe);
  recipe.images = {{"second"}};
  EXPECT_EQ(mask_of(recipe), alone);
}

TEST(RecordImages, ComeThroughJson) {
  Recipe recipe = pair_recipe(Draws::same);
  recipe.images.push_back({"third", Draws::own});
  EXPECT_EQ(Recipe::from_json(recipe.to_json()), recipe);
  EXPECT_THAT(recipe.to_json(), HasSubstr(R"("images":{"second":{},"third":{"draws":"own"}})"));
  EXPECT_EQ(Recipe::from_json("{}").to_json().find("images"), std::string::npos);
}

TEST(RecordImages, AreRefusedWithTheirNames) {
  EXPECT_EQ(why_not(R"({"images": [{}]})"),
            "train.json: \"images\" must be an object in { }, with a member for each field");
  EXPECT_EQ(why_not(R"({"images": {"image": {}}})"),
            "train.json: images: \"image\": \"image\" is in every sample already");
  EXPECT_EQ(why_not(R"({"images": {"label": {}}})"),
            "train.json: images: \"label\": the field comes twice");
  EXPECT_EQ(why_not(R"({"images": {"local": {}}, "views": {"local": {}}})"),
            "train.json: images: \"local\": the field comes twice");
  EXPECT_EQ(why_not(R"({"images": {"": {}}})"),
            "train.json: images: \"\": a field must have a name");
  EXPECT_EQ(why_not(R"({"images": {"depth": {"draws": "other"}}})"),
            "train.json: images: \"depth\": \"draws\" is \"other\", must be \"same\" or \"own\"");
  EXPECT_EQ(why_not(R"({"images": {"depth": {"size": 3}}})"),
            "train.json: images: \"depth\": unknown key \"size\"; the known keys are \"draws\"");
  EXPECT_EQ(why_not(R"({"images": {"depth": {}}, "mix": {"classes": 3, "mixup": 0.2}})"),
            "train.json: \"mix\" mixes one image of a sample, and \"images\" makes more");
  EXPECT_EQ(why_not(R"({"ops": [{"op": "random_resized_crop"},
                                {"op": "random_horizontal_flip", "on": "device"}],
                        "images": {"depth": {}}})"),
            "train.json: images: \"depth\": ops[1] (random_horizontal_flip) runs on the device, "
            "which converts the field \"image\" only");
  Recipe many;
  for (int n = 0; n < 64; ++n) many.images.push_back({"image" + std::to_string(n)});
  EXPECT_THAT(error_of([&] { many.validate(); }).what(), HasSubstr("\"images\" has 64 members"));
}

}  // namespace
}  // namespace millrace
