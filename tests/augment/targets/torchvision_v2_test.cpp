// SPDX-License-Identifier: Apache-2.0
//
// Masks, boxes and keypoints, compared with torchvision's transforms.v2: stored cases in
// torchvision_v2.txt, and as many new ones if a Python has it.
#include <gtest/gtest.h>
#include <millrace/recipe.h>
#include <millrace/warp_operations.h>

#include <array>
#include <boost/crc.hpp>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "augment/targets/target_sample.h"
#include "ops/program.h"
#include "support/run_program.h"
#include "targets/targets.h"

namespace millrace {
namespace {

using testing::bytes_of;
using testing::TargetSample;
using V2Case = nlohmann::json;

/// Returns the mask that torchvision_v2.py makes.
std::vector<std::uint8_t> v2_mask(Size size, int seed) {
  std::vector<std::uint8_t> mask;
  for (int y = 0; y < size.height; ++y)
    for (int x = 0; x < size.width; ++x)
      mask.push_back(static_cast<std::uint8_t>((x * 7 + y * 13 + x * y * 3 + seed * 101) % 251));
  return mask;
}

Size size_in(const V2Case& list) { return {list[0].get<int>(), list[1].get<int>()}; }

/// Returns the steps that are folded.
std::vector<Operation> folded_steps(const V2Case& one) {
  std::vector<Operation> ops;
  for (const V2Case& step : one["steps"]) {
    const std::string name = step[0];
    const auto number = [&](std::size_t n) { return step[n].get<int>(); };
    if (name == "resized_crop")
      ops.emplace_back(ResizedCrop{{number(1), number(2), number(3), number(4)}});
    else if (name == "resize")
      ops.emplace_back(Resize{.exact = {number(1), number(2)}});
    else if (name == "pad")
      ops.emplace_back(Pad{.padding = {number(1), number(2), number(3), number(4)}});
    else if (name == "center_crop")
      ops.emplace_back(CenterCrop{});
    else if (name == "horizontal_flip")
      ops.emplace_back(RandomHorizontalFlip{.p = 1});
    else if (name == "vertical_flip")
      ops.emplace_back(RandomVerticalFlip{.p = 1});
  }
  return ops;
}

/// Moves an image's targets as the warp of this step does.
void warp_by(const V2Case& step, Size size, SpatialTargets& spatial_targets) {
  const std::string name = step[0];
  const auto number = [&](std::size_t n) { return step[n].get<double>(); };
  if (name == "affine") {
    spatial_targets.warp(
        affine_map(middle(size), number(1), {0, 0}, number(2), {number(3), number(4)}));
  } else if (name == "rotate") {
    spatial_targets.rotate(number(1));
  } else if (name == "perspective") {
    std::array<Point, 4> corners{};
    for (std::size_t n = 0; n < corners.size(); ++n)
      corners[n] = {number(1 + 2 * n), number(2 + 2 * n)};
    const auto map = perspective_map(size, corners);
    ASSERT_TRUE(map);
    spatial_targets.warp(*map);
  }
}

std::vector<float> numbers_in(const V2Case& rows) {
  std::vector<float> numbers;
  for (const V2Case& row : rows)
    for (const V2Case& number : row) numbers.push_back(number.get<float>());
  return numbers;
}

/// Expects equal bits. After a warp, whose matrix torchvision has in float32, expects nearly equal
/// numbers.
void expect_numbers(std::span<const float> made, const std::vector<float>& expected, bool warped) {
  ASSERT_EQ(made.size(), expected.size());
  for (std::size_t n = 0; n < made.size(); ++n) {
    const float near = warped ? 1e-3F + 1e-4F * std::abs(expected[n]) : 0;
    EXPECT_NEAR(made[n], expected[n], near) << "number " << n;
  }
}

void compare_with_v2(const V2Case& one) {
  const Size size = size_in(one["size"]);
  const Size output = size_in(one["output"]);
  const std::vector<Target> targets{
      {"mask", MaskTarget{}},
      {"boxes", BoxesTarget{}},
      {"points", KeypointsTarget{}},
      {"numbers", ValuesTarget{.dtype = DType::int32, .of = "boxes"}}};
  const std::vector<float> boxes = numbers_in(one["boxes"]);
  std::vector<std::int32_t> numbers;
  for (std::size_t n = 0; n < boxes.size() / 4; ++n) numbers.push_back(static_cast<int>(n));
  const auto mask_bytes = bytes_of(v2_mask(size, one["seed"]));
  const auto boxes_bytes = bytes_of(boxes);
  const auto points_bytes = bytes_of(numbers_in(one["points"]));
  const auto numbers_bytes = bytes_of(numbers);
  const std::array fields{RecordField{"mask", mask_bytes}, RecordField{"boxes", boxes_bytes},
                          RecordField{"points", points_bytes},
                          RecordField{"numbers", numbers_bytes}};

  const TargetSample place(SampleSpec(fields_of(targets, output)));
  TargetWorkers workers(targets, 0, std::make_shared<DecodeBudget>());
  ASSERT_TRUE(workers.read(Record(0, fields)).is_ok());
  const std::vector<Operation> ops = folded_steps(one);
  Random random(0, 0);
  const ResamplePlan plan = Program(output, ops).plan(size, 1, random);
  ASSERT_EQ(plan.problem, "");
  ASSERT_TRUE(workers.place(size, plan).is_ok());
  const bool warped = ops.size() < one["steps"].size();
  for (const V2Case& step : one["steps"]) warp_by(step, output, workers);
  Sample sample = place.sample();
  ASSERT_TRUE(workers.write(sample).is_ok());

  const auto mask = place.all<std::uint8_t>("mask");
  boost::crc_32_type checksum;
  checksum.process_bytes(mask.data(), mask.size());
  EXPECT_EQ(checksum.checksum(), one["made_mask"].get<std::uint32_t>());
  const auto kept = place.values<std::int32_t>("numbers");
  EXPECT_EQ(std::vector(kept.begin(), kept.end()), one["kept"].get<std::vector<std::int32_t>>());
  expect_numbers(place.values<float>("boxes"), numbers_in(one["made_boxes"]), warped);
  expect_numbers(place.values<float>("points"), numbers_in(one["made_points"]), warped);
}

void compare_all(const std::string& text, std::size_t count) {
  const V2Case cases = V2Case::parse(text);
  ASSERT_EQ(cases.size(), count);
  for (const V2Case& one : cases) {
    SCOPED_TRACE(one["size"].dump() + one["steps"].dump());
    compare_with_v2(one);
  }
}

TEST(Targets, AreThoseOfKeptTorchvisionCases) {
  std::ifstream file(MILLRACE_TORCHVISION_V2_CASES);
  compare_all({std::istreambuf_iterator<char>(file), {}}, 120);
}

TEST(Targets, AreThoseOfALiveTorchvision) {
  constexpr std::size_t count = 500;
  const char* const named = std::getenv("MILLRACE_TORCHVISION_PYTHON");
  const auto python = testing::run_program({named != nullptr ? named : "/usr/bin/python3",
                                            MILLRACE_TORCHVISION_V2, std::to_string(count), "2"});
  if (python.exit_code == 77)
    GTEST_SKIP() << python.err << "a virtual environment with torchvision 0.23 or later has it; "
                 << "name its Python in MILLRACE_TORCHVISION_PYTHON";
  ASSERT_EQ(python.exit_code, 0) << python.err;
  compare_all(python.out, count);
}

}  // namespace
}  // namespace millrace
