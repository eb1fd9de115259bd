// SPDX-License-Identifier: Apache-2.0
//
// The distributions of what operations draw, by their results on one image. A chi-square test
// compares the frequency of each result with torchvision's law. The seed is fixed, so the test is
// reproducible.
#include <gtest/gtest.h>
#include <millrace/colour_operations.h>
#include <millrace/policies.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numbers>

#include "augment/ops/pixel_sample.h"
#include "ops/policy/auto_augment_policies.h"
#include "ops/policy/dirichlet.h"
#include "pixels/adjust.h"
#include "pixels/levels.h"

namespace millrace {
namespace {

using testing::PixelSample;
using Pixels = std::vector<std::uint8_t>;
/// The probability of each result; the empty result stands for all others.
using Law = std::map<Pixels, double>;

constexpr Size drawn_size{25, 23};

Pixels some_pixels() {
  Pixels pixels(PixelSample(drawn_size).pixels.size());
  Random random(3, 3);
  for (std::uint8_t& level : pixels) level = static_cast<std::uint8_t>(20 + random.below(180));
  return pixels;
}

/// Returns the image changed by `change`.
template <typename Change>
Pixels changed(const Change& change) {
  PixelSample sample(drawn_size);
  sample.pixels = some_pixels();
  sample.image.pixels = sample.pixels.data();
  change(sample);
  return sample.pixels;
}

/// Compares `count` results in classes with the probabilities `expected`, whose sum is 1.
/// Chi-square must stay below the value that only a thousandth of runs exceeds (Wilson and
/// Hilferty's approximation).
void expect_law(const std::vector<double>& expected, const std::vector<double>& seen,
                double count) {
  double square = 0;
  double sum = 0;
  int classes = 0;
  for (std::size_t n = 0; n < expected.size(); ++n) {
    sum += expected[n];
    if (expected[n] <= 0) {
      EXPECT_EQ(seen[n], 0) << "class " << n << " cannot be";
      continue;
    }
    ++classes;
    const double mean = expected[n] * count;
    square += (seen[n] - mean) * (seen[n] - mean) / mean;
  }
  EXPECT_NEAR(sum, 1, 1e-9);
  ASSERT_GT(classes, 1);
  const double freedom = classes - 1;
  const double root = 1 - 2 / (9 * freedom) + 3.09 * std::sqrt(2 / (9 * freedom));
  EXPECT_LT(square, freedom * root * root * root) << classes << " classes";
}

void add(Law& law, const Pixels& result, double probability) { law[result] += probability; }

/// Adds the results of a policy's operations on `image`, at the magnitudes `first_bin` to before
/// `bins` of `all`.
void add_augmentations(Law& law, std::span<const Augmenting> space, int first_bin, int bins,
                       int all, double probability) {
  for (const Augmenting& what : space) {
    const int last = what.has_magnitudes() ? bins : first_bin + 1;
    for (int bin = first_bin; bin < last; ++bin)
      for (const int sign : {1, -1})
        add(law, changed([&](PixelSample& sample) {
              augment(sample.image, what.what,
                      (what.has_sign ? sign : 1) * what.magnitude(bin, all, drawn_size),
                      {Interpolation::nearest, {}});
            }),
            probability / (2.0 * (last - first_bin)) / static_cast<double>(space.size()));
  }
}

Law trivial_law() {
  Law law;
  add_augmentations(law, trivial_augment_wide_space(), 0, 5, 5, 1);
  return law;
}

Law rand_law() {
  Law law;
  add_augmentations(law, rand_augment_space(), 7, 8, 10, 1);
  return law;
}

Law auto_law(AutoAugmentPolicy policy) {
  Law law;
  for (const AugmentationPair& pair : policy_of(policy))
    for (int runs = 0; runs < 4; ++runs)
      for (int signs = 0; signs < 4; ++signs) {
        double probability = 1.0 / augmentation_pairs / 4;
        const Pixels result = changed([&](PixelSample& sample) {
          for (std::size_t n = 0; n < 2; ++n) {
            const bool run = (runs >> n & 1) != 0;
            probability *= run ? pair[n].p : 1 - pair[n].p;
            if (!run) continue;
            const Augmenting& what = auto_augment_space()[static_cast<std::size_t>(pair[n].what)];
            const double magnitude = what.magnitude(pair[n].bin, 10, drawn_size);
            augment(sample.image, what.what,
                    what.has_sign && (signs >> n & 1) == 0 ? -magnitude : magnitude,
                    {Interpolation::nearest, {}});
          }
        });
        add(law, result, probability);
      }
  return law;
}

/// All orders of four changes by fixed factors.
Law jitter_law() {
  Law law;
  std::array<std::size_t, 4> order{0, 1, 2, 3};
  const std::array<Adjustment, 4> all{{{Property::brightness, 1.3},
                                       {Property::contrast, 0.6},
                                       {Property::saturation, 1.7},
                                       {Property::hue, 0.2}}};
  do {
    add(law, changed([&](PixelSample& sample) {
          for (const std::size_t n : order) adjust(sample.pixels, all[n].of, all[n].factor);
        }),
        1.0 / 24);
  } while (std::ranges::next_permutation(order).found);
  return law;
}

Law with_probability(double p, const std::function<void(Pixels&)>& change) {
  Law law;
  add(law, some_pixels(), 1 - p);
  add(law, changed([&](PixelSample& sample) { change(sample.pixels); }), p);
  return law;
}

void invert_all(Pixels& pixels) { invert(pixels); }

struct Drawing {
  const char* name;
  Operation operation;
  Law law;
};

class DrawLaw : public ::testing::TestWithParam<Drawing> {};

TEST_P(DrawLaw, IsThatOfTorchvision) {
  const Operation& operation = GetParam().operation;
  const auto& law = GetParam().law;
  const int count = 40 * static_cast<int>(law.size()) + 1000;
  std::map<Pixels, double> seen;
  for (int position = 0; position < count; ++position) {
    Random random(11, static_cast<std::uint64_t>(position));
    Pixels result = changed([&](PixelSample& sample) { sample.run(operation, random); });
    if (!law.contains(result)) result.clear();
    ++seen[result];
  }
  if (!law.contains({})) {
    EXPECT_EQ(seen.count({}), 0U) << "a result that cannot be";
  }
  std::vector<double> expected;
  std::vector<double> counts;
  for (const auto& [result, probability] : law) {
    expected.push_back(probability);
    counts.push_back(seen[result]);
  }
  expect_law(expected, counts, count);
}

INSTANTIATE_TEST_SUITE_P(
    Operations, DrawLaw,
    ::testing::Values(
        Drawing{"jitter", ColorJitter{{1.3, 1.3}, {0.6, 0.6}, {1.7, 1.7}, {0.2, 0.2}},
                jitter_law()},
        Drawing{"grayscale", RandomGrayscale{0.3},
                with_probability(0.3, [](Pixels& pixels) { make_grey(pixels); })},
        Drawing{"solarize", RandomSolarize{100, 0.3},
                with_probability(0.3, [](Pixels& pixels) { solarize(pixels, 100); })},
        Drawing{"posterize", RandomPosterize{3, 0.3},
                with_probability(0.3, [](Pixels& pixels) { posterize(pixels, 3); })},
        Drawing{"equalize", RandomEqualize{0.3},
                with_probability(0.3, [](Pixels& pixels) { equalize(pixels); })},
        Drawing{"autocontrast", RandomAutocontrast{0.3},
                with_probability(0.3, [](Pixels& pixels) { autocontrast(pixels); })},
        Drawing{"invert", RandomInvert{0.3}, with_probability(0.3, invert_all)},
        Drawing{"sharpness", RandomAdjustSharpness{2, 0.3},
                with_probability(0.3,
                                 [](Pixels& pixels) {
                                   Pixels memory(sharpness_memory(drawn_size));
                                   adjust_sharpness(pixels.data(), drawn_size, 2, memory);
                                 })},
        Drawing{"apply", RandomApply{{RandomInvert{1}, Grayscale{}}, 0.3},
                with_probability(0.3,
                                 [](Pixels& pixels) {
                                   invert(pixels);
                                   make_grey(pixels);
                                 })},
        Drawing{"choice", RandomChoice{{RandomInvert{1}, Grayscale{}, RandomInvert{1}}},
                Law{{changed([](PixelSample& sample) { invert(sample.pixels); }), 2.0 / 3},
                    {changed([](PixelSample& sample) { make_grey(sample.pixels); }), 1.0 / 3}}},
        Drawing{"three", ThreeAugment{},
                Law{{changed([](PixelSample& sample) { solarize(sample.pixels, 128); }), 1.0 / 3},
                    {changed([](PixelSample& sample) { make_grey(sample.pixels); }), 1.0 / 3},
                    {{}, 1.0 / 3}}},
        Drawing{"trivial", TrivialAugmentWide{.num_magnitude_bins = 5}, trivial_law()},
        Drawing{"rand", RandAugment{.num_ops = 1, .magnitude = 7, .num_magnitude_bins = 10},
                rand_law()},
        Drawing{"imagenet", AutoAugment{}, auto_law(AutoAugmentPolicy::imagenet)},
        Drawing{"cifar10", AutoAugment{AutoAugmentPolicy::cifar10},
                auto_law(AutoAugmentPolicy::cifar10)},
        Drawing{"svhn", AutoAugment{AutoAugmentPolicy::svhn}, auto_law(AutoAugmentPolicy::svhn)}),
    [](const auto& drawing) { return std::string(drawing.param.name); });

/// Counts the results of `draw` in ten classes, whose upper ends have the values `cdf` of a
/// distribution.
void expect_distribution(const std::function<double(Random&)>& draw,
                         const std::function<double(double)>& cdf) {
  constexpr int count = 4000;
  std::vector<double> expected;
  std::vector<double> seen(10);
  for (int n = 0; n < 10; ++n) expected.push_back(cdf((n + 1) / 10.0) - cdf(n / 10.0));
  for (int position = 0; position < count; ++position) {
    Random random(12, static_cast<std::uint64_t>(position));
    ++seen[static_cast<std::size_t>(std::clamp(draw(random) * 10, 0.0, 9.0))];
  }
  expect_law(expected, seen, count);
}

TEST(DrawLaws, FactorsAreUniform) {
  // A brightness of 0.2 to 0.6 turns a white pixel to 51 to 153.
  expect_distribution(
      [](Random& random) {
        PixelSample sample({1, 1});
        std::ranges::fill(sample.pixels, std::uint8_t{255});
        sample.run(ColorJitter{.brightness = {0.2, 0.6}}, random);
        return (sample.pixels[0] + 0.5 - 51) / 102;
      },
      [](double x) { return std::round(102 * x) / 102; });
}

TEST(DrawLaws, WeightsOfMixturesAreDirichlet) {
  const auto first = [](double alpha, std::size_t count) {
    return [=](Random& random) { return drawn_dirichlet(alpha, count, random)[0]; };
  };
  expect_distribution(first(1, 2), [](double x) { return x; });
  expect_distribution(first(1, 3), [](double x) { return 1 - (1 - x) * (1 - x); });
  expect_distribution(first(2, 2), [](double x) { return x * x * (3 - 2 * x); });
  expect_distribution(first(0.5, 2),
                      [](double x) { return 2 / std::numbers::pi * std::asin(std::sqrt(x)); });
}

TEST(DrawLaws, MixturesOfAFlatImageAreIt) {
  // At a severity of 1 the operations that may be drawn do not change this level.
  for (const bool all_ops : {false, true})
    for (std::uint64_t position = 0; position < 30; ++position) {
      Random random(13, position);
      PixelSample sample({9, 7});
      std::ranges::fill(sample.pixels, std::uint8_t{160});
      sample.run(AugMix{.severity = 1, .all_ops = all_ops}, random);
      for (const std::uint8_t level : sample.pixels) ASSERT_NEAR(level, 160, 1);
    }
}

}  // namespace
}  // namespace millrace
