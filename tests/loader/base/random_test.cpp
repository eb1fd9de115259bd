// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/random.h>

#include <bit>
#include <random>
#include <set>
#include <vector>

#include "base/philox.h"
#include "loader/base/fused_draws.h"
#include "loader/order/chi_square.h"

namespace millrace {
namespace {

using testing::chi_square;
using testing::chi_square_limit;
using ::testing::ElementsAre;

static_assert(std::uniform_random_bit_generator<Random>);

std::vector<std::uint64_t> draws(Random random, std::size_t count) {
  std::vector<std::uint64_t> result(count);
  for (std::uint64_t& draw : result) draw = random.bits64();
  return result;
}

// The known answers of Random123, the reference implementation of the paper's authors.
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_THAT(philox4x32({0, 0, 0, 0}, {0, 0}),
              ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_THAT(philox4x32({ones, ones, ones, ones}, {ones, ones}),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(
      philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(Random, IsAFunctionOfSeedPositionAndStream) {
  const auto reference = draws(Random(7, 1000, 2), 20);
  EXPECT_EQ(draws(Random(7, 1000, 2), 20), reference);
  EXPECT_NE(draws(Random(8, 1000, 2), 20), reference);
  EXPECT_NE(draws(Random(7, 1001, 2), 20), reference);
  EXPECT_NE(draws(Random(7, 1000, 3), 20), reference);
  EXPECT_EQ(draws(Random(7, 1000), 20), draws(Random(7, 1000, 0), 20));
}

TEST(Random, UsesAllBitsOfSeedAndPosition) {
  std::set<std::uint64_t> first;
  for (unsigned bit = 0; bit < 64; ++bit) {
    first.insert(Random(std::uint64_t{1} << bit, 0).bits64());
    first.insert(Random(0, std::uint64_t{1} << bit).bits64());
  }
  for (unsigned bit = 0; bit < 32; ++bit) first.insert(Random(0, 0, 1U << bit).bits64());
  EXPECT_EQ(first.size(), 64U + 64 + 32);
}

TEST(Random, NeverRepeatsANeighboursNumbers) {
  std::set<std::uint64_t> seen;
  std::size_t drawn = 0;
  for (std::uint64_t position = 0; position < 8; ++position)
    for (std::uint32_t stream = 0; stream < 4; ++stream)
      for (const std::uint64_t draw : draws(Random(3, position, stream), 2000)) {
        seen.insert(draw);
        ++drawn;
      }
  EXPECT_EQ(seen.size(), drawn);
}

TEST(Random, NeighboursAreIndependent) {
  // Neighbours differ in half of their bits, however near they are.
  double of_position = 0;
  double of_stream = 0;
  double of_seed = 0;
  constexpr std::uint64_t count = 20'000;
  for (std::uint64_t n = 0; n < count; ++n) {
    const std::uint64_t here = Random(5, n).bits64();
    of_position += std::popcount(here ^ Random(5, n + 1).bits64());
    of_stream += std::popcount(here ^ Random(5, n, 1).bits64());
    of_seed += std::popcount(here ^ Random(6, n).bits64());
  }
  // One standard deviation of such a mean is 4 / sqrt(count) = 0.03 bits.
  EXPECT_NEAR(of_position / count, 32, 0.15);
  EXPECT_NEAR(of_stream / count, 32, 0.15);
  EXPECT_NEAR(of_seed / count, 32, 0.15);
}

TEST(Random, FirstDrawsOfPositionsAreUniform) {
  std::vector<std::uint64_t> bins(256);
  for (std::uint64_t position = 0; position < 100'000; ++position)
    ++bins[Random(1, position)() >> 24];
  EXPECT_LT(chi_square(bins), chi_square_limit(255));
}

TEST(Random, UniformFillsItsIntervalEvenly) {
  Random random(11, 0);
  std::vector<std::uint64_t> bins(100);
  std::vector<std::uint64_t> pairs(400);
  double before = random.uniform();
  for (int n = 0; n < 200'000; ++n) {
    const double value = random.uniform();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    ASSERT_EQ(value * 0x1p53, std::floor(value * 0x1p53));
    ++bins[static_cast<std::size_t>(value * 100)];
    ++pairs[static_cast<std::size_t>(value * 20) * 20 + static_cast<std::size_t>(before * 20)];
    before = value;
  }
  EXPECT_LT(chi_square(bins), chi_square_limit(99));
  EXPECT_LT(chi_square(pairs), chi_square_limit(399));
}

TEST(Random, UniformFillsAGivenInterval) {
  Random random(12, 0);
  double least = 10;
  double most = -10;
  for (int n = 0; n < 10'000; ++n) {
    const double value = random.uniform(-2.0, 3.0);
    least = std::min(least, value);
    most = std::max(most, value);
  }
  EXPECT_GE(least, -2);
  EXPECT_LT(most, 3);
  EXPECT_LT(least, -1.99);
  EXPECT_GT(most, 2.99);
}

/// Whether this processor runs `draw_fused`.
bool runs_fused_draws() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
#else
  return true;
#endif
}

// The callers are compiled with and without -march=haswell -ffp-contract=fast.
TEST(Random, UniformInAnIntervalIsTheSameWhateverTheCallersOptions) {
  constexpr double low = -0.3;
  constexpr double high = 1.6;
  std::vector<double> draws(1000);
  std::vector<double> expected(draws.size());
  Random random(14, 0);
  for (double& draw : expected) {
    const volatile double product = random.uniform() * (high - low);  // volatile: rounded here
    draw = low + product;
  }
  Random plain(14, 0);
  for (double& draw : draws) draw = plain.uniform(low, high);
  EXPECT_EQ(draws, expected);
  if (!runs_fused_draws()) GTEST_SKIP() << "the processor has no fused multiply-add";
  Random fused(14, 0);
  testing::draw_fused(fused, low, high, draws.data(), draws.size());
  EXPECT_EQ(draws, expected);
}

TEST(Random, BelowIsUniformForSmallBounds) {
  for (const std::uint64_t bound : {1U, 2U, 3U, 7U, 10U, 100U}) {
    Random random(13, bound);
    std::vector<std::uint64_t> counts(bound);
    for (int n = 0; n < 50'000; ++n) {
      const std::uint64_t value = random.below(bound);
      ASSERT_LT(value, bound);
      ++counts[value];
    }
    if (bound > 1) {
      EXPECT_LT(chi_square(counts), chi_square_limit(static_cast<double>(bound - 1)))
          << "bound " << bound;
    }
  }
}

// 2^64 is one and a third times this bound: without rejection every third value would come twice as
// often.
TEST(Random, BelowIsWithoutBiasForHugeBounds) {
  constexpr std::uint64_t bound = std::uint64_t{3} << 62;
  Random random(14, 0);
  std::vector<std::uint64_t> remainders(3);
  for (int n = 0; n < 50'000; ++n) {
    const std::uint64_t value = random.below(bound);
    ASSERT_LT(value, bound);
    ++remainders[value % 3];
  }
  EXPECT_LT(chi_square(remainders), chi_square_limit(2));
}

}  // namespace
}  // namespace millrace
