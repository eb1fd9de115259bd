// SPDX-License-Identifier: Apache-2.0
//
// The pixel stage on every instruction set, compared with its plain form.
#include <gtest/gtest.h>
#include <millrace/random.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "augment/resample/vector_targets.h"
#include "jpeg/colour.h"
#include "jpeg/idct.h"
#include "jpeg/upsample.h"

namespace millrace::jpeg {
namespace {

using testing::name_of;
using testing::OnTarget;
using testing::vector_targets;

int any_below(Random& random, int bound) {
  return static_cast<int>(random() % static_cast<unsigned>(bound));
}

/// Fills a group with values of one kind: photographs' values, large ones, or any. One in `one_in`
/// is not 0.
void fill(BlockGroup& group, Random& random, int kind, int one_in) {
  for (std::size_t n = 0; n < group.values.size(); ++n) {
    const auto any = static_cast<std::int16_t>(random());
    group.values[n] = any_below(random, one_in) != 0 ? std::int16_t{0}
                      : kind == 0                    ? static_cast<std::int16_t>(any % 64)
                      : kind == 1                    ? static_cast<std::int16_t>(any % 2048)
                                                     : any;
  }
}

TEST(InverseTransform, EqualsThePlainOneOnEveryInstructionSet) {
  for (const std::int64_t target : vector_targets()) {
    SCOPED_TRACE(name_of(target));
    const OnTarget on(target);
    Random random(5, 0);
    auto groups = std::make_unique<std::array<BlockGroup, 3>>();
    for (int n = 0; n < 3000; ++n) {
      StepsOfGroup steps;
      std::array<std::uint16_t, 64> table;
      for (std::uint16_t& step : table)
        step = static_cast<std::uint16_t>(1 + any_below(random, n % 2 == 0 ? 12 : 255));
      steps.set(table);
      for (BlockGroup& group : *groups) fill(group, random, n % 3, n % 5 == 0 ? 40 : 1 + n % 9);
      // The short cut for a block of one row, which wraps around.
      if (n % 7 == 0)
        std::fill(groups->front().values.begin() + BlockGroup::row_values,
                  groups->front().values.end(), std::int16_t{0});
      // Blocks of only a DC coefficient, which are filled, and one of them with one more
      // coefficient.
      if (n % 4 == 0)
        for (std::size_t at = 0; at < BlockGroup::row_values * block_side; ++at)
          if (at % block_side != 0 || at >= BlockGroup::row_values) (*groups)[1].values[at] = 0;
      if (n % 12 == 0) (*groups)[1].values[static_cast<std::size_t>(any_below(random, 256))] = 1;
      constexpr std::size_t stride = 3 * BlockGroup::row_values + 5;
      std::array<std::uint8_t, 8 * stride> made{};
      std::array<std::uint8_t, 8 * stride> plain{};
      inverse_transform(groups->data(), 3, steps, made.data(), stride);
      for (std::size_t block = 0; block < 12; ++block)
        inverse_transform_plain((*groups)[block / 4].values.data() + block % 4 * block_side,
                                steps.values() + block % 4 * block_side,
                                plain.data() + block * block_side, stride);
      ASSERT_EQ(made, plain) << n;
    }
  }
}

TEST(InverseTransform, ALargeFirstRowWrapsAroundAsInThePlainOne) {
  for (const std::int64_t target : vector_targets()) {
    SCOPED_TRACE(name_of(target));
    const OnTarget on(target);
    for (const int dc : {-256, -255, -129, -128, -65, -64, 63, 64, 65, 128, 255, 256}) {
      StepsOfGroup steps;
      std::array<std::uint16_t, 64> table;
      table.fill(128);
      steps.set(table);
      auto group = std::make_unique<BlockGroup>();
      group->values.fill(0);
      group->values[0] = static_cast<std::int16_t>(dc);
      group->values[block_side + 1] = 1;
      std::array<std::uint8_t, 8 * BlockGroup::row_values> made{};
      std::array<std::uint8_t, 8 * BlockGroup::row_values> plain{};
      inverse_transform(group.get(), 1, steps, made.data(), BlockGroup::row_values);
      for (std::size_t block = 0; block < BlockGroup::blocks; ++block)
        inverse_transform_plain(group->values.data() + block * block_side,
                                steps.values() + block * block_side,
                                plain.data() + block * block_side, BlockGroup::row_values);
      ASSERT_EQ(made, plain) << dc;
    }
  }
}

TEST(InverseTransform, ReducedIsTheTransformOfTheLowestFrequencies) {
  Random random(7, 0);
  auto group = std::make_unique<BlockGroup>();
  for (int n = 0; n < 2000; ++n) {
    StepsOfGroup steps;
    std::array<std::uint16_t, 64> table;
    for (std::uint16_t& step : table) step = static_cast<std::uint16_t>(1 + any_below(random, 20));
    steps.set(table);
    fill(*group, random, 0, 1 + n % 9);
    for (const int side : {4, 2, 1}) {
      std::array<std::uint8_t, 4 * 16> made{};
      inverse_transform_reduced(group.get(), 1, steps, side, made.data(), 16);
      for (int block = 0; block < BlockGroup::blocks; ++block)
        for (int y = 0; y < side; ++y)
          for (int x = 0; x < side; ++x) {
            const auto wave = [&](int frequency, int at) {
              return frequency == 0 ? 1
                                    : std::sqrt(2) * std::cos((2 * at + 1) * frequency *
                                                              std::numbers::pi / (2 * side));
            };
            double sum = 0;
            for (int v = 0; v < side; ++v)
              for (int u = 0; u < side; ++u) {
                const auto at = static_cast<std::size_t>(v * BlockGroup::row_values + u);
                sum += group->values[at + static_cast<std::size_t>(block * block_side)] *
                       steps.values()[at] * wave(u, x) * wave(v, y);
              }
            const int sample = made[static_cast<std::size_t>(y * 16 + block * side + x)];
            ASSERT_NEAR(sample, std::clamp(sum / 8 + 128, 0.0, 255.0), 0.7) << side;
          }
    }
  }
}

TEST(Colour, EveryColourIsTheEquations) {
  for (const std::int64_t target : vector_targets()) {
    SCOPED_TRACE(name_of(target));
    const OnTarget on(target);
    std::vector<std::uint8_t> y(256 + row_slack);
    std::vector<std::uint8_t> cb(y.size());
    std::vector<std::uint8_t> cr(y.size());
    std::vector<std::uint8_t> rgb(3 * y.size());
    for (std::size_t n = 0; n < 256; ++n) cr[n] = static_cast<std::uint8_t>(n);
    for (const int light : {0, 1, 77, 128, 200, 255}) {
      std::fill(y.begin(), y.end(), static_cast<std::uint8_t>(light));
      for (int blue = 0; blue < 256; ++blue) {
        std::fill(cb.begin(), cb.end(), static_cast<std::uint8_t>(blue));
        ycc_to_rgb(y.data(), cb.data(), cr.data(), rgb.data(), 256);
        for (int red = 0; red < 256; ++red) {
          // jdcolor.c: 16 bits of fraction, rounded to the nearest.
          const auto sample = [&](int sum) {
            return std::clamp(light + ((sum + (1 << 15)) >> 16), 0, 255);
          };
          const std::uint8_t* pixel = rgb.data() + 3 * red;
          ASSERT_EQ(pixel[0], sample(91881 * (red - 128)));
          ASSERT_EQ(pixel[1], sample(-22554 * (blue - 128) - 46802 * (red - 128)));
          ASSERT_EQ(pixel[2], sample(116130 * (blue - 128)));
        }
      }
    }
    for (std::size_t n = 0; n < 256; ++n) y[n] = static_cast<std::uint8_t>(n);
    grey_to_rgb(y.data(), rgb.data(), 256);
    for (std::size_t n = 0; n < 3 * 256; ++n) ASSERT_EQ(rgb[n], n / 3);
  }
}

TEST(Upsampling, ShareIsThreeQuartersAndOne) {
  constexpr std::size_t count = 100;
  for (const std::int64_t target : vector_targets()) {
    SCOPED_TRACE(name_of(target));
    const OnTarget on(target);
    Random random(6, 0);
    std::vector<std::uint8_t> near_row(count + row_slack);
    std::vector<std::uint8_t> far_row(count + row_slack);
    for (auto* row : {&near_row, &far_row})
      for (std::uint8_t& sample : *row) sample = static_cast<std::uint8_t>(random());
    std::vector<std::int16_t> sums(count + 2 * row_slack);
    std::vector<std::uint8_t> made(2 * count + 2 * row_slack);
    const auto near_at = [&](std::size_t n) { return static_cast<int>(near_row[n]); };
    const auto far_at = [&](std::size_t n) { return static_cast<int>(far_row[n]); };

    for (const bool upper : {true, false}) {
      smooth_down(near_row.data(), far_row.data(), made.data(), count, upper);
      for (std::size_t n = 0; n < count; ++n)
        ASSERT_EQ(made[n], (3 * near_at(n) + far_at(n) + (upper ? 1 : 2)) >> 2);
    }
    widen_row(near_row.data(), sums.data(), count);
    smooth_across(sums.data() + 1, made.data(), count - 2, false);
    for (std::size_t n = 1; n + 1 < count; ++n) {
      ASSERT_EQ(made[2 * n - 2], (3 * near_at(n) + near_at(n - 1) + 1) >> 2);
      ASSERT_EQ(made[2 * n - 1], (3 * near_at(n) + near_at(n + 1) + 2) >> 2);
    }
    sum_rows(near_row.data(), far_row.data(), sums.data(), count);
    smooth_across(sums.data() + 1, made.data(), count - 2, true);
    const auto sum_at = [&](std::size_t n) { return 3 * near_at(n) + far_at(n); };
    for (std::size_t n = 1; n + 1 < count; ++n) {
      ASSERT_EQ(made[2 * n - 2], (3 * sum_at(n) + sum_at(n - 1) + 8) >> 4);
      ASSERT_EQ(made[2 * n - 1], (3 * sum_at(n) + sum_at(n + 1) + 7) >> 4);
    }
  }
}

}  // namespace
}  // namespace millrace::jpeg
