// SPDX-License-Identifier: Apache-2.0
//
// Operations state the memory that they hold beside the image.
#include <millrace/image_transform.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "augment/ops/pixel_sample.h"
#include "augment/orientations.h"
#include "augment/targets/target_sample.h"
#include "ops/operations.h"
#include "ops/program.h"
#include "support/counting_malloc.h"

namespace millrace {
namespace {

/// All operations with their default parameters, or with those that they require.
std::vector<Operation> all_operations() {
  std::vector<Operation> all;
  for (const OperationRow& row : operations) all.push_back(row.make());
  const std::vector<Operation> nested{
      AugMix{}, GaussianBlur{.kernel_size = 101},
      RandomApply{.ops = {RandomChoice{.ops = {RandomAffine{}, ThreeAugment{}}}}, .p = 1}};
  for (Operation& op : all) {
    const std::string name = op.implementation().name();
    if (name == "gaussian_blur") op = GaussianBlur{.kernel_size = 23};
    if (name == "random_solarize") op = RandomSolarize{.threshold = 128};
    if (name == "random_posterize") op = RandomPosterize{.bits = 4};
    if (name == "random_adjust_sharpness") op = RandomAdjustSharpness{.sharpness_factor = 2};
    if (name == "resized_crop") op = ResizedCrop{.box = {8, 8, 64, 64}};
    if (name == "random_apply") op = RandomApply{.ops = nested, .p = 1};
    if (name == "random_choice") op = RandomChoice{.ops = nested};
  }
  return all;
}

TEST(OperationMemory, OfPixelOperationsIsStated) {
  MILLRACE_NEEDS_COUNTING_MALLOC();
  constexpr std::int64_t lists_bytes = 256;    // the scratch's list of its pieces
  constexpr std::int64_t rounding_share = 64;  // malloc rounds up to pages
  for (const Operation& op : all_operations()) {
    const auto* const pixels = dynamic_cast<const PixelOperation*>(&op.implementation());
    if (pixels == nullptr || pixels->joins_resampling()) continue;
    for (const Size size : {Size{300, 200}, Size{7, 5}, Size{40, 1}}) {
      testing::PixelSample sample(size);
      const std::int64_t before = testing::held_bytes();
      for (std::uint64_t seed = 0; seed < 12; ++seed) {
        Random random(seed, 1);
        sample.run(op, random);
      }
      const ScratchSizes stated = pixels->scratch(size);
      const auto sum = std::accumulate(stated.begin(), stated.end(), std::int64_t{0});
      EXPECT_LE(testing::held_bytes() - before, sum + lists_bytes + sum / rounding_share)
          << pixels->name() << " " << size.width << " x " << size.height;
    }
  }
}

/// Returns a recipe with the operation. Operations that need others before or after them get those.
Recipe recipe_with(const Operation& op, Size output) {
  const std::array<std::vector<Operation>, 6> lists{{{Resize{output.width}, op},
                                                     {op},
                                                     {op, RandomResizedCrop{}},
                                                     {op, CenterCrop{}},
                                                     {Resize{output.width}, op, CenterCrop{}},
                                                     {RandomResizedCrop{}, op}}};
  for (const std::vector<Operation>& ops : lists)
    if (order_problem(ops).empty()) return {.output = output, .ops = ops, .targets = {}};
  ADD_FAILURE() << "no recipe has " << op.implementation().name();
  return {};
}

/// Makes samples of a record, and expects that a worker then holds at most what is stated.
void expect_stated(const Recipe& recipe, std::span<const RecordField> record, const char* name) {
  // The decoder of a small image and the tables of the resampling take less.
  constexpr std::int64_t decoder_bytes = 1 << 20;
  const auto transform = image_transform(recipe, {.max_decode_bytes = 1});
  const testing::TargetSample memory(transform->spec());
  const std::int64_t before = testing::held_bytes();
  const auto worker = transform->make_worker();
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    Sample sample = memory.sample();
    Random random(seed, 1);
    ASSERT_TRUE(worker->make(Record(0, record), random, sample).is_ok());
  }
  // A worker has two makers of images, and only one of them has made any.
  const auto stated = static_cast<std::int64_t>(transform->scratch_limit(1) / 2) -
                      static_cast<std::int64_t>(DecodeBudget::small_bytes);
  EXPECT_LE(testing::held_bytes() - before, stated + decoder_bytes) << name;
}

TEST(OperationMemory, OfEachRecipeIsStated) {
  MILLRACE_NEEDS_COUNTING_MALLOC();
  const testing::Bytes image =
      testing::with_orientation(testing::encode(testing::noise(96, 96, 5), {}), 6);
  const std::array record{RecordField{"image", image}};
  for (const Operation& op : all_operations())
    expect_stated(recipe_with(op, {800, 800}), record, op.implementation().name());
}

TEST(OperationMemory, OfTargetsIsStated) {
  MILLRACE_NEEDS_COUNTING_MALLOC();
  constexpr int boxes = 100'000;
  const testing::Bytes image = testing::encode(testing::noise(96, 96, 5), {});
  const std::vector<std::byte> mask(96 * 96);
  const std::vector<std::byte> numbers(sizeof(float) * 4 * boxes);
  const std::array record{RecordField{"image", image}, RecordField{"mask", mask},
                          RecordField{"boxes", numbers}, RecordField{"points", numbers}};
  const Recipe recipe{.output = {800, 800},
                      .ops = {RandomResizedCrop{}, RandomRotation{}},
                      .targets = {{"mask", MaskTarget{}},
                                  {"boxes", BoxesTarget{.max_length = boxes}},
                                  {"points", KeypointsTarget{.max_length = 2 * boxes}}}};
  expect_stated(recipe, record, "targets");
}

}  // namespace
}  // namespace millrace
