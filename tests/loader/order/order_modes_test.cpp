// SPDX-License-Identifier: Apache-2.0
//
// Tests of which records come when: blocks, weighted, mixed.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "loader/order/chi_square.h"
#include "loader/order/drawn.h"

namespace millrace {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using namespace testing;

using Parts = std::vector<Order::Part>;

TEST(OrderBlocks, EpochsHaveEachRecordOnce) {
  for (std::uint64_t size = 1; size <= 120; ++size)
    for (const std::uint64_t block : {1U, 2U, 3U, 7U, 10U, 64U, 200U})
      for (const std::uint64_t window : {1U, 2U, 3U, 5U, 100U}) {
        const Sampler sampler(Order::blocks({block, window}), size, size + block);
        ASSERT_EQ(sampler.epoch_size(), size);
        ASSERT_TRUE(is_permutation(epoch_of(sampler, window)))
            << size << " in blocks of " << block << ", " << window;
      }
  for (std::uint64_t size = 1; size <= 2000; ++size)
    ASSERT_TRUE(is_permutation(epoch_of(Sampler(Order::blocks({16, 4}), size, 5), size % 5)))
        << size;
  for (const std::uint64_t size : {65'536U, 200'001U, 16'384U * 9U})
    ASSERT_TRUE(is_permutation(epoch_of(Sampler(Order::blocks(), size, 5), 1))) << size;
  ASSERT_TRUE(
      is_permutation(epoch_of(Sampler(Order::blocks({UINT64_MAX, UINT64_MAX}), 1000, 5), 1)));
}

TEST(OrderBlocks, StayInRangeForHugeSizes) {
  for (const std::uint64_t size : {(std::uint64_t{1} << 40) + 17, std::uint64_t{1} << 63}) {
    const Sampler sampler(Order::blocks({.block_records = 1000}), size, 9);
    std::vector<std::uint64_t> records = drawn(sampler, size - 20'000, 20'000);
    EXPECT_LT(*std::ranges::max_element(records), size);
    std::ranges::sort(records);
    EXPECT_EQ(std::ranges::adjacent_find(records), records.end()) << "a record came twice";
  }
}

// The records of a window are all records of a few blocks. Neither blocks nor records are in their
// order.
TEST(OrderBlocks, ReadNearSequentially) {
  constexpr std::uint64_t size = 1000;  // in 32 blocks, the last of which has 8 records
  const Sampler sampler(Order::blocks({.block_records = 32, .window_blocks = 4}), size, 6);
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    const std::vector<std::uint64_t> records = epoch_of(sampler, epoch);
    std::vector<std::uint64_t> first_blocks;
    for (auto begin = records.begin(); begin != records.end();) {
      std::set<std::uint64_t> blocks;
      auto end = begin;
      for (; end != records.end() && (blocks.contains(*end / 32) || blocks.size() < 4); ++end)
        blocks.insert(*end / 32);
      EXPECT_EQ(blocks.size(), 4U);
      EXPECT_EQ(end - begin, blocks.contains(31) ? 104 : 128) << "not all of its blocks' records";
      EXPECT_FALSE(std::is_sorted(begin, end));
      first_blocks.push_back(*blocks.begin());
      begin = end;
    }
    EXPECT_EQ(first_blocks.size(), 8U);
    EXPECT_FALSE(std::ranges::is_sorted(first_blocks));
  }
  EXPECT_NE(epoch_of(sampler, 0), epoch_of(sampler, 1));
}

TEST(OrderBlocks, EachRecordComesEquallyOftenInEachPlace) {
  for (const std::uint64_t size : {12U, 13U, 15U}) {
    // Includes the short block, so no position has it more often than its size allows.
    std::vector<std::uint64_t> counts(size * size);
    for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
      const std::vector<std::uint64_t> records =
          epoch_of(Sampler(Order::blocks({4, 2}), size, seed), 0);
      for (std::uint64_t offset = 0; offset < size; ++offset)
        ++counts[offset * size + records[offset]];
    }
    if (size % 4 == 0) {
      EXPECT_LT(chi_square(counts), chi_square_limit(static_cast<double>((size - 1) * (size - 1))))
          << size;
      continue;
    }
    // Blocks of the same size come equally often at each position.
    for (std::uint64_t offset = 0; offset < size; ++offset)
      EXPECT_LT(chi_square(std::span(counts).subspan(offset * size, 12)), chi_square_limit(11))
          << size << " at " << offset;
  }
}

TEST(OrderWeighted, DrawsInProportion) {
  const std::vector<double> weights{5, 0, 1, 1, 0.5, 2.5, 0};
  const Sampler sampler(Order::weighted(weights, 1000), weights.size(), 3);
  EXPECT_EQ(sampler.epoch_size(), 1000U);
  std::map<std::uint64_t, double> counts;
  constexpr double draws = 200'000;
  for (const std::uint64_t record : drawn(sampler, 0, static_cast<std::uint64_t>(draws)))
    ++counts[record];
  EXPECT_FALSE(counts.contains(1));
  EXPECT_FALSE(counts.contains(6));
  double statistic = 0;
  for (const auto& [record, count] : counts) {
    const double expected = draws * weights[record] / 10;
    statistic += (count - expected) * (count - expected) / expected;
  }
  EXPECT_LT(statistic, chi_square_limit(4));
}

TEST(OrderWeighted, TakesWeightsOfAnyKind) {
  for (const auto& weights :
       {std::vector<double>{7}, {1e300, 0, 1e300}, {5e-324, 0, 5e-324}, {1e-300, 1, 0}}) {
    const Sampler sampler(Order::weighted(weights, 1000), weights.size(), 3);
    for (const std::uint64_t record : epoch_of(sampler, 0)) {
      ASSERT_LT(record, weights.size());
      ASSERT_GT(weights[record], 0);
    }
  }
  // A million records, of which one in a thousand has a weight above 0.
  std::vector<double> few(1'000'000);
  for (std::size_t n = 7; n < few.size(); n += 1000) few[n] = static_cast<double>(n);
  for (const std::uint64_t record :
       drawn(Sampler(Order::weighted(std::move(few)), 1'000'000, 3), 0, 50'000))
    ASSERT_EQ(record % 1000, 7U);
}

TEST(OrderWeighted, EqualWeightsAreUniformAndNoPositionIsLikeAnother) {
  const Sampler sampler(Order::weighted(std::vector<double>(100, 0.1)), 100, 3);
  std::vector<std::uint64_t> counts(100);
  std::vector<std::uint64_t> pairs(100);
  const std::vector<std::uint64_t> records = drawn(sampler, 0, 100'000);
  for (std::size_t n = 0; n < records.size(); ++n) {
    ++counts[records[n]];
    if (n % 2 == 1) ++pairs[(records[n] + 100 - records[n - 1]) % 100];
  }
  EXPECT_LT(chi_square(counts), chi_square_limit(99));
  EXPECT_LT(chi_square(pairs), chi_square_limit(99));
  EXPECT_NE(epoch_of(sampler, 0), epoch_of(sampler, 1));
  EXPECT_NE(epoch_of(sampler, 0),
            epoch_of(Sampler(Order::weighted(std::vector<double>(100, 0.1)), 100, 4), 0));
}

/// Returns how many of these records each part has.
std::vector<std::uint64_t> per_part(const Parts& parts, const std::vector<std::uint64_t>& records) {
  std::vector<std::uint64_t> counts(parts.size());
  for (std::uint64_t record : records) {
    std::size_t part = 0;
    for (; record >= parts[part].records; ++part) record -= parts[part].records;
    ++counts[part];
  }
  return counts;
}

TEST(OrderMixed, SharesAreExactInEachRun) {
  const auto shares = [](const Parts& parts, std::uint64_t run, std::uint64_t number) {
    std::uint64_t records = 0;
    for (const Order::Part& part : parts) records += part.records;
    return per_part(parts,
                    drawn(Sampler(Order::mixed(parts, 1000), records, 8), number * run, run));
  };
  for (const std::uint64_t number : {0U, 1U, 77U}) {
    EXPECT_THAT(shares({{10, 3}, {500, 1}}, 1024, number), ElementsAre(768, 256));
    EXPECT_THAT(shares({{10, 1}, {500, 1}, {20, 1}}, 1024, number), ElementsAre(342, 341, 341));
    EXPECT_THAT(shares({{10, 0}, {500, 2}, {20, 2}}, 1024, number), ElementsAre(0, 512, 512));
    EXPECT_THAT(shares({{10, 0.01}, {500, 0.99}}, 4096, number), ElementsAre(41, 4055));
    EXPECT_THAT(shares({{7, 1}}, 1024, number), ElementsAre(1024));
  }
  EXPECT_THAT(shares({{10, 1e-4}, {500, 1}}, 1 << 18, 1), ElementsAre(26, (1 << 18) - 26));
}

TEST(OrderMixed, WhoseTurnItIsIsRandom) {
  const Sampler sampler(Order::mixed({{100, 1}, {100, 1}}), 200, 8);
  std::vector<std::uint64_t> counts(4);
  std::vector<std::uint64_t> by_place(1024);
  const std::vector<std::uint64_t> records = drawn(sampler, 0, 1024 * 200);
  for (std::size_t n = 0; n < records.size(); ++n) {
    if (n % 2 == 1) ++counts[(records[n - 1] / 100) * 2 + records[n] / 100];
    by_place[n % 1024] += records[n] / 100;
  }
  EXPECT_LT(chi_square(counts), chi_square_limit(3));
  EXPECT_LT(chi_square(by_place), chi_square_limit(1023));
}

// A part's draws go through all its records before one comes again, in whatever epochs.
TEST(OrderMixed, PartsGoPassByPass) {
  const Parts parts{{1000, 1}, {64, 1}, {7, 2}};
  const Sampler sampler(Order::mixed(parts, 333), 1071, 8);
  // After 125 runs of 1024 each part has completed whole passes: 32, 500 and 64000 / 7 of them.
  std::vector<std::uint64_t> counts(1071);
  std::vector<std::uint64_t> of_first;
  for (const std::uint64_t record : drawn(sampler, 0, 1024 * 125)) {
    ++counts[record];
    if (record < 1000) of_first.push_back(record);
  }
  EXPECT_THAT(std::vector(counts.begin(), counts.begin() + 1000), Each(32));
  EXPECT_THAT(std::vector(counts.begin() + 1000, counts.begin() + 1064), Each(500));
  EXPECT_THAT(std::vector(counts.begin() + 1064, counts.end()), Each(::testing::AnyOf(9142, 9143)));
  // Within a pass no record comes twice, except in the run in which the pass ends.
  std::set<std::uint64_t> pass(of_first.begin(), of_first.begin() + 256 * 3);
  EXPECT_EQ(pass.size(), 256U * 3);
  EXPECT_FALSE(std::is_sorted(of_first.begin(), of_first.begin() + 1000));
  // The next pass begins in the run of draws 768 to 1023, and has its own order. Otherwise the run
  // after that would have these records again.
  std::ranges::sort(of_first.begin(), of_first.begin() + 256);
  const auto again =
      std::count_if(of_first.begin() + 1024, of_first.begin() + 1280, [&](std::uint64_t record) {
        return std::binary_search(of_first.begin(), of_first.begin() + 256, record);
      });
  EXPECT_LT(again, 128) << "256 * 256 / 1000 are to be expected";
}

TEST(OrderMixed, EpochsAreCutsOfOneSequence) {
  const Sampler some(Order::mixed({{30, 1}, {70, 3}}, 64), 100, 8);
  const Sampler all(Order::mixed({{30, 1}, {70, 3}}), 100, 8);
  EXPECT_EQ(some.epoch_size(), 64U);
  EXPECT_EQ(all.epoch_size(), 100U);
  EXPECT_EQ(drawn(some, 0, 2000), drawn(all, 0, 2000));
}

TEST(OrderModes, DrawWhatTheyAlwaysDrew) {
  const auto first = [](const Order& order, std::uint64_t size) {
    return drawn(Sampler(order, size, 42), 3 * size, 6);
  };
  EXPECT_THAT(first(Order::blocks(), 1'281'167),
              ElementsAre(12133, 11310, 1082998, 226272, 595996, 1083054));
  EXPECT_THAT(first(Order::blocks({.block_records = 4, .window_blocks = 2}), 15),
              ElementsAre(2, 7, 6, 4, 5, 0));
  EXPECT_THAT(first(Order::weighted({1, 2, 3, 0.1, 1e-3}), 5), ElementsAre(0, 3, 2, 2, 1, 0));
  EXPECT_THAT(first(Order::mixed({{400, 1}, {600, 2}}), 1000),
              ElementsAre(724, 936, 634, 880, 165, 536));
}

}  // namespace
}  // namespace millrace
