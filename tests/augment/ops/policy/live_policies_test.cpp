// SPDX-License-Identifier: Apache-2.0
//
// The operations of policies, their magnitudes, and mixtures, compared with the torchvision of this
// machine's Python.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "augment/ops/pixel_sample.h"
#include "ops/policy/augmentation_space.h"
#include "pixels/levels.h"
#include "pixels/mixture.h"
#include "support/run_program.h"

namespace millrace {
namespace {

constexpr int policy_cases = 300;
constexpr std::int32_t of_mixture = 3;

struct PolicyCase {
  std::int32_t space, place, bin, bins, minus, interpolation, red, green, blue, width, height;
};

std::span<const Augmenting> space_of(std::int32_t number) {
  if (number == 0) return auto_augment_space();
  return number == 1 ? trivial_augment_wide_space() : aug_mix_space(true);
}

void mix(testing::PixelSample& sample, const std::array<float, 3>& weights) {
  const std::vector<std::uint8_t> original = sample.pixels;
  std::vector<std::uint8_t> negative = original;
  invert(negative);
  std::vector<std::uint8_t> solarized = original;
  solarize(solarized, 128);
  std::vector<float> sums(original.size());
  begin_mixture(original, weights[0], sums.data());
  add_to_mixture(negative, weights[1], sums.data());
  add_to_mixture(solarized, weights[2], sums.data());
  end_mixture(sums.data(), sample.pixels);
}

TEST(LivePolicies, MakeThePixelsOfTorchvision) {
  const testing::TemporaryFolder folder;
  const std::string path = (folder / "cases").string();
  const auto python = testing::run_program(
      {"/usr/bin/python3", MILLRACE_LIVE_POLICIES, path, std::to_string(policy_cases)});
  if (python.exit_code == 77) GTEST_SKIP() << "needs python3-torchvision and python3-pil";
  ASSERT_EQ(python.exit_code, 0) << python.err;

  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::size_t at = 0;
  const auto take = [&](void* to, std::size_t count) {
    ASSERT_LE(at + count, bytes.size());
    std::memcpy(to, &bytes[at], count);
    at += count;
  };
  for (int n = 0; n < 4 * policy_cases; ++n) {
    PolicyCase one{};
    take(&one, sizeof one);
    ASSERT_EQ(one.space, n / policy_cases);
    double magnitude = 0;
    std::array<float, 3> weights{};
    if (one.space == of_mixture)
      take(weights.data(), sizeof weights);
    else
      take(&magnitude, sizeof magnitude);
    testing::PixelSample sample({one.width, one.height});
    std::vector<std::uint8_t> expected(sample.pixels.size());
    take(sample.pixels.data(), sample.pixels.size());
    take(expected.data(), expected.size());
    if (one.space == of_mixture) {
      mix(sample, weights);
    } else {
      const Augmenting& what = space_of(one.space)[static_cast<std::size_t>(one.place)];
      EXPECT_NEAR(what.magnitude(one.bin, one.bins, sample.size), magnitude, 2e-5)
          << "case " << n << ", operation " << one.place << ", " << one.bin << " of " << one.bins;
      EXPECT_TRUE(what.has_sign || one.minus == 0);
      augment(sample.image, what.what, one.minus == 1 ? -magnitude : magnitude,
              {one.interpolation == 0 ? Interpolation::nearest : Interpolation::bilinear,
               {one.red, one.green, one.blue}});
    }
    EXPECT_TRUE(sample.pixels == expected)
        << "case " << n << ", operation " << one.place << " at " << magnitude;
  }
  EXPECT_EQ(at, bytes.size());
}

}  // namespace
}  // namespace millrace
