// SPDX-License-Identifier: Apache-2.0
//
// Masks, boxes, keypoints and values, compared with the images that they belong to.
#include "targets/targets.h"

#include <gtest/gtest.h>
#include <millrace/colour_operations.h>
#include <millrace/image_transform.h>
#include <millrace/policies.h>
#include <millrace/warp_operations.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "augment/targets/target_sample.h"
#include "ops/program.h"

namespace millrace {
namespace {

using testing::bytes_of;
using testing::TargetSample;
using Bytes = std::vector<std::byte>;
using Fields = std::vector<std::pair<std::string, Bytes>>;

constexpr Size mask_size{37, 29};

/// Returns numbers that differ from pixel to pixel and from row to row.
std::vector<std::uint8_t> spread_numbers(Size size) {
  std::vector<std::uint8_t> numbers;
  for (int n = 0; n < size.width * size.height; ++n)
    numbers.push_back(static_cast<std::uint8_t>(1 + n % 241));
  return numbers;
}

/// Returns the same numbers as a grey image without loss (PGM).
Bytes grey_image(Size size, const std::vector<std::uint8_t>& levels) {
  const std::string header =
      "P5 " + std::to_string(size.width) + " " + std::to_string(size.height) + " 255\n";
  Bytes image;
  for (const char letter : header) image.push_back(static_cast<std::byte>(letter));
  const Bytes pixels = bytes_of(levels);
  image.insert(image.end(), pixels.begin(), pixels.end());
  return image;
}

/// One worker of a recipe's transform.
class TargetMaker {
 public:
  explicit TargetMaker(const Recipe& recipe)
      : transform_(image_transform(recipe)),
        worker_(transform_->make_worker()),
        place_(transform_->spec()) {}

  Status make(const Fields& fields, std::uint64_t position = 0) {
    std::vector<RecordField> record;
    for (const auto& [name, bytes] : fields) record.push_back({name, bytes});
    Random random(5, position);
    Sample sample = place_.sample();
    return worker_->make(Record(0, record), random, sample);
  }
  const TargetSample* operator->() const { return &place_; }

 private:
  std::shared_ptr<const Transform> transform_;
  std::unique_ptr<TransformWorker> worker_;
  TargetSample place_;
};

TEST(Targets, MaskGoesWhereTheImageGoes) {
  constexpr int fill = 250;
  constexpr Colour fill_colour{fill, fill, fill};
  Recipe recipe{
      {30, 26},
      {RandomCrop{.padding = {8, 8, 8, 8}, .fill = fill_colour}, RandomHorizontalFlip{},
       RandomVerticalFlip{},
       RandomApply{
           {RandomAffine{.degrees = {-30, 30}, .translate = {0.2, 0.2}, .fill = fill_colour}}, 0.5},
       RandomChoice{
           {RandomRotation{.degrees = {-90, 90}, .fill = fill_colour}, RandomInvert{.p = 0}}},
       RandomPerspective{.interpolation = Interpolation::nearest, .fill = fill_colour}}};
  recipe.targets = {{"mask", MaskTarget{.fill = fill}},
                    {"wide", MaskTarget{.dtype = DType::uint16, .fill = fill}}};
  const std::vector<std::uint8_t> numbers = spread_numbers(mask_size);
  const std::vector<std::uint16_t> wide(numbers.begin(), numbers.end());
  const Fields fields{{"image", grey_image(mask_size, numbers)},
                      {"mask", bytes_of(numbers)},
                      {"wide", bytes_of(wide)}};
  TargetMaker maker(recipe);
  for (std::uint64_t position = 0; position < 100; ++position) {
    ASSERT_TRUE(maker.make(fields, position).is_ok());
    const auto image = maker->all<std::uint8_t>("image");
    const auto mask = maker->all<std::uint8_t>("mask");
    for (std::size_t pixel = 0; pixel < mask.size(); ++pixel)
      ASSERT_EQ(mask[pixel], image[3 * pixel]) << "position " << position << ", pixel " << pixel;
    EXPECT_TRUE(std::ranges::equal(mask, maker->all<std::uint16_t>("wide")));
  }
}

TEST(Targets, OfAnImageThatIsTurnedAreTurnedWithIt) {
  constexpr Region marked{5, 9, 11, 7};
  std::vector<std::uint8_t> numbers(static_cast<std::size_t>(mask_size.width * mask_size.height));
  for (int y = marked.y; y < marked.y + marked.height; ++y)
    std::fill_n(&numbers[static_cast<std::size_t>(y * mask_size.width + marked.x)], marked.width,
                std::uint8_t{1});
  const Bytes mask_bytes = bytes_of(numbers);
  const Bytes boxes_bytes = bytes_of(std::vector<float>{5, 9, 16, 16});
  const Bytes points_bytes = bytes_of(std::vector<float>{5, 9, 15, 15});
  const std::array fields{RecordField{"mask", mask_bytes}, RecordField{"boxes", boxes_bytes},
                          RecordField{"points", points_bytes}};
  const std::vector<Target> targets{
      {"mask", MaskTarget{}}, {"boxes", BoxesTarget{}}, {"points", KeypointsTarget{}}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    SCOPED_TRACE(orientation);
    const Turn turn = turn_of(orientation);
    const Size output = turned(mask_size, turn);
    const TargetSample place(SampleSpec(fields_of(targets, output)));
    TargetWorkers workers(targets, 0, std::make_shared<DecodeBudget>());
    ASSERT_TRUE(workers.read(Record(0, fields)).is_ok());
    Random random(0, 0);
    const std::vector<Operation> ops{ExifTranspose{}, CenterCrop{}};
    ASSERT_TRUE(workers.place(mask_size, Program(output, ops).plan(mask_size, orientation, random))
                    .is_ok());
    Sample sample = place.sample();
    ASSERT_TRUE(workers.write(sample).is_ok());

    const auto box = place.values<float>("boxes");
    ASSERT_EQ(box.size(), 4U);
    const Region made{static_cast<int>(box[0]), static_cast<int>(box[1]),
                      static_cast<int>(box[2] - box[0]), static_cast<int>(box[3] - box[1])};
    const Region back = stored_region(made, output, turn);
    EXPECT_EQ((std::array{back.x, back.y, back.width, back.height}),
              (std::array{marked.x, marked.y, marked.width, marked.height}));
    const auto mask = place.all<std::uint8_t>("mask");
    for (int y = 0; y < output.height; ++y)
      for (int x = 0; x < output.width; ++x)
        ASSERT_EQ(mask[static_cast<std::size_t>(y * output.width + x)],
                  x >= made.x && x < made.x + made.width && y >= made.y && y < made.y + made.height)
            << x << ", " << y;
    // Opposite corner pixels of the marked part.
    const auto points = place.values<float>("points");
    ASSERT_EQ(points.size(), 4U);
    EXPECT_EQ(std::min(points[0], points[2]), box[0]);
    EXPECT_EQ(std::max(points[1], points[3]), box[3] - 1);
  }
}

TEST(Targets, BoxesAreReadInEachFormat) {
  Recipe recipe{{20, 16}, {Resize{.exact = {40, 32}}, CenterCrop{}}};
  const Fields image{{"image", grey_image({20, 16}, std::vector<std::uint8_t>(320, 9))}};
  const auto made = [&](const BoxesTarget& boxes, std::vector<float> numbers) {
    recipe.targets = {{"boxes", boxes}};
    TargetMaker maker(recipe);
    Fields fields = image;
    fields.emplace_back("boxes", bytes_of(numbers));
    EXPECT_TRUE(maker.make(fields).is_ok());
    const auto found = maker->values<float>("boxes");
    return std::vector(found.begin(), found.end());
  };
  // Twice as large, minus (10, 8), clipped.
  const std::vector<float> expected{0, 4, 6, 16};
  const std::vector<float> edges{3, 6, 8, 14};
  EXPECT_EQ(made({}, edges), expected);
  EXPECT_EQ(made({.format = BoxFormat::xywh}, {3, 6, 5, 8}), expected);
  EXPECT_EQ(made({.format = BoxFormat::cxcywh}, {5.5F, 10, 5, 8}), expected);
  EXPECT_EQ(made({.unit = CoordinateUnit::fractions}, {0.15F, 0.375F, 0.4F, 0.875F}), expected);
  // The first box keeps half of its area, the second one a line, the third one nothing.
  const std::vector<float> three{0, 4, 10, 12, 0, 0, 5, 16, 0, 0, 4, 4};
  EXPECT_EQ(made({}, three).size(), 4U);
  EXPECT_EQ(made({.min_size = 0, .min_area = 0}, three).size(), 12U);
  EXPECT_EQ(made({.min_area = 161}, three).size(), 0U);
  EXPECT_EQ(made({}, {}).size(), 0U);
}

TEST(Targets, WhatBelongsToBoxesIsDroppedWithThem) {
  Recipe recipe{{10, 10}, {ResizedCrop{{10, 0, 10, 10}}}};
  recipe.targets = {{"labels", ValuesTarget{.of = "boxes"}},
                    {"boxes", BoxesTarget{.max_length = 4}},
                    {"joints", KeypointsTarget{.points = 2, .values = 3, .of = "boxes"}},
                    {"scores", ValuesTarget{.dtype = DType::float32, .shape = {2}, .of = "boxes"}},
                    {"caption", ValuesTarget{.dtype = DType::uint8, .max_length = 8}},
                    {"hot", ValuesTarget{.dtype = DType::float32, .shape = {3}}}};
  const auto text = std::string("hello");
  const Fields fields{
      {"image", grey_image({20, 10}, std::vector<std::uint8_t>(200, 9))},
      {"labels", bytes_of(std::vector<std::int64_t>{7, 8, 9})},
      {"boxes", bytes_of(std::vector<float>{12, 1, 15, 5, 1, 1, 5, 5, 18, 2, 20, 9})},
      {"joints",
       bytes_of(std::vector<float>{11, 1, 2, 12, 2, 0, 3, 3, 2, 4, 4, 2, 0, 5, 1, 19, 6, 1})},
      {"scores", bytes_of(std::vector<float>{1, 2, 3, 4, 5, 6})},
      {"caption", bytes_of(std::vector<char>(text.begin(), text.end()))},
      {"hot", bytes_of(std::vector<float>{0, 1, 0})}};
  TargetMaker maker(recipe);
  ASSERT_TRUE(maker.make(fields).is_ok());
  const auto expect = [&](const char* field, const auto& expected) {
    using Value = typename std::decay_t<decltype(expected)>::value_type;
    EXPECT_TRUE(std::ranges::equal(maker->values<Value>(field), expected)) << field;
  };
  expect("boxes", std::vector<float>{2, 1, 5, 5, 8, 2, 10, 9});
  expect("labels", std::vector<std::int64_t>{7, 9});
  // Points outside of the output stay, with their third numbers.
  expect("joints", std::vector<float>{1, 1, 2, 2, 2, 0, -10, 5, 1, 9, 6, 1});
  expect("scores", std::vector<float>{1, 2, 5, 6});
  expect("caption", std::vector<std::uint8_t>{'h', 'e', 'l', 'l', 'o'});
  EXPECT_TRUE(std::ranges::equal(maker->all<float>("hot"), std::array{0.F, 1.F, 0.F}));
}

TEST(Targets, OfABadRecordNameTheirField) {
  Recipe recipe{{10, 10}, {CenterCrop{}}};
  recipe.targets = {{"mask", MaskTarget{}},
                    {"boxes", BoxesTarget{.max_length = 2}},
                    {"labels", ValuesTarget{.of = "boxes"}},
                    {"joints", KeypointsTarget{.max_length = 1}},
                    {"caption", ValuesTarget{.dtype = DType::uint8, .max_length = 3}},
                    {"hot", ValuesTarget{.dtype = DType::float32, .shape = {3}}}};
  TargetMaker maker(recipe);
  const Fields good{{"image", grey_image({12, 10}, std::vector<std::uint8_t>(120, 9))},
                    {"mask", Bytes(120)},
                    {"boxes", Bytes(16)},
                    {"labels", Bytes(8)},
                    {"joints", Bytes(8)},
                    {"caption", Bytes(3)},
                    {"hot", Bytes(12)}};
  EXPECT_TRUE(maker.make(good).is_ok());
  const auto why = [&](const char* field, const Bytes& bytes) {
    Fields fields = good;
    for (auto& [name, held] : fields)
      if (name == field) held = bytes;
    return maker.make(fields).reason();
  };
  EXPECT_EQ(why("mask", Bytes(119)),
            "its field \"mask\" is not a PNG and has 119 bytes; uint8 of 12 x 10 pixels have 120");
  EXPECT_EQ(why("boxes", Bytes(15)),
            "its field \"boxes\" has 15 bytes; a box is four float32, 16 bytes");
  EXPECT_EQ(why("boxes", Bytes(48)),
            "its field \"boxes\" has 3 boxes; the recipe's \"max_length\" is 2");
  const float none = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(why("boxes", bytes_of(std::vector<float>{0, 0, 1, none})),
            "its field \"boxes\" has a number in box 0 that is not finite");
  EXPECT_EQ(why("labels", Bytes(16)), "its field \"labels\" has 2 rows, and the record 1 boxes");
  EXPECT_EQ(why("labels", Bytes(9)), "its field \"labels\" has 9 bytes; a row has 8");
  EXPECT_EQ(why("joints", Bytes(16)),
            "its field \"joints\" has 2 rows; the recipe's \"max_length\" is 1");
  EXPECT_EQ(why("joints", bytes_of(std::vector<float>{none, 0})),
            "its field \"joints\" has a coordinate that is not finite");
  EXPECT_EQ(why("caption", Bytes(4)),
            "its field \"caption\" has 4 rows; the recipe's \"max_length\" is 3");
  EXPECT_EQ(why("hot", Bytes(8)), "its field \"hot\" has 8 bytes; float32 [3] has 12");
  Fields without = good;
  without.pop_back();
  EXPECT_THROW((void)maker.make(without), Error);
  EXPECT_TRUE(maker.make(good).is_ok());
}

TEST(Targets, AreNotKeptInMemory) {
  Recipe recipe = Recipe::eval();
  EXPECT_GT(image_transform(recipe)->cacheable_prefix().bytes, 0U);
  recipe.targets.push_back({"mask", MaskTarget{}});
  EXPECT_EQ(image_transform(recipe)->cacheable_prefix().bytes, 0U);
  // A target that does not move does not prevent the cache.
  recipe.targets.back() = {"hot", ValuesTarget{.shape = {3}}};
  EXPECT_EQ(image_transform(recipe)->cacheable_prefix().fingerprint,
            image_transform(Recipe::eval())->cacheable_prefix().fingerprint);
}

}  // namespace
}  // namespace millrace
