// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/error.h>
#include <millrace/sampler.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "loader/order/chi_square.h"

namespace millrace {
namespace {

using testing::chi_square;
using testing::chi_square_limit;

Sampler shuffled(std::uint64_t records, std::uint64_t seed) {
  return Sampler(Order::shuffled(), records, seed);
}

std::vector<std::uint64_t> order(const Sampler& sampler, std::uint64_t epoch) {
  std::vector<std::uint64_t> result(sampler.epoch_size());
  for (std::uint64_t offset = 0; offset < sampler.epoch_size(); ++offset)
    result[offset] = sampler.at(epoch, offset);
  return result;
}

/// Whether an epoch has each record exactly once.
bool is_permutation(const Sampler& sampler, std::uint64_t epoch) {
  std::vector<bool> seen(sampler.epoch_size());
  for (std::uint64_t offset = 0; offset < sampler.epoch_size(); ++offset) {
    const std::uint64_t record = sampler.at(epoch, offset);
    if (record >= sampler.epoch_size() || seen[record]) return false;
    seen[record] = true;
  }
  return true;
}

TEST(Sampler, EpochsHaveEachRecordOnceForAllSmallSizes) {
  for (std::uint64_t size = 1; size <= 2000; ++size)
    ASSERT_TRUE(is_permutation(shuffled(size, size * 31), size % 5)) << size;
}

TEST(Sampler, EpochsHaveEachRecordOnceForLargeSizes) {
  for (const std::uint64_t size : {65'535U, 65'536U, 65'537U, 262'145U, 1'281'167U})
    ASSERT_TRUE(is_permutation(shuffled(size, 3), 1)) << size;
}

TEST(Sampler, EpochsHaveEachRecordOnceForLargeRandomSizes) {
  Random random(2026, 0);
  for (int n = 0; n < 10; ++n) {
    const std::uint64_t size = 100'000 + random.below(900'000);
    ASSERT_TRUE(is_permutation(shuffled(size, random.bits64()), random.below(1000))) << size;
  }
}

// A run that was begun with one version of millrace goes on with the next.
TEST(Sampler, DrawsWhatItAlwaysDrew) {
  const auto first = [](std::uint64_t size) {
    std::vector<std::uint64_t> records;
    for (std::uint64_t offset = 0; offset < 6; ++offset)
      records.push_back(shuffled(size, 42).at(1, offset));
    return records;
  };
  EXPECT_THAT(first(10), ::testing::ElementsAre(0, 8, 3, 1, 7, 5));
  EXPECT_THAT(first(1000), ::testing::ElementsAre(428, 278, 591, 449, 578, 717));
  EXPECT_THAT(first(1'281'167),
              ::testing::ElementsAre(327202, 1068045, 567590, 312167, 655899, 731947));
  EXPECT_THAT(first(1'000'000'000), ::testing::ElementsAre(810570166, 618479925, 696215854,
                                                           692867593, 909664566, 393050214));
}

TEST(Sampler, ManyAtOnceAreWhatEachIsAlone) {
  for (const Order& order :
       {Order::shuffled(), Order::sequential(),
        Order::blocks({.block_records = 7, .window_blocks = 3}),
        Order::weighted(std::vector<double>(100, 1.0)), Order::mixed({{30, 1}, {70, 1}}),
        Order::bucketed(std::vector<std::uint32_t>(100, 3),
                        {.window_records = 20, .group_records = 5}),
        Order::shuffled().repeated(3), Order::blocks().subset({5, 7, 99, 5})}) {
    const Sampler sampler(order, 100, 4);
    std::vector<std::uint64_t> positions;
    std::vector<std::uint64_t> expected;
    // Goes through several epochs in order, then to scattered positions.
    for (std::uint64_t n = 0; n < 400; ++n) positions.push_back(n < 250 ? 60 + n : n * n * 977);
    for (const std::uint64_t position : positions) expected.push_back(sampler(position));
    std::vector<std::uint64_t> records(positions.size());
    sampler.draw(positions, records);
    EXPECT_EQ(records, expected);
    sampler.draw(positions, positions);
    EXPECT_EQ(positions, expected) << "in the place of the positions";
  }
}

TEST(Sampler, StaysInRangeAndInjectiveForHugeSizes) {
  for (const std::uint64_t size :
       {(std::uint64_t{1} << 33) + 1, std::uint64_t{1} << 40, (std::uint64_t{1} << 62) + 12345}) {
    const Sampler sampler = shuffled(size, 9);
    std::set<std::uint64_t> records;
    for (std::uint64_t n = 0; n < 20'000; ++n) {
      const std::uint64_t record = sampler.at(0, n);
      ASSERT_LT(record, size);
      records.insert(record);
    }
    EXPECT_EQ(records.size(), 20'000U) << size;
  }
}

TEST(Sampler, PositionsCountThroughTheEpochs) {
  const Sampler sampler = shuffled(1000, 4);
  for (const std::uint64_t position : {0U, 999U, 1000U, 1001U, 123'456U})
    EXPECT_EQ(sampler(position), sampler.at(position / 1000, position % 1000));
}

TEST(Sampler, EpochsAndSeedsHaveOrdersOfTheirOwn) {
  const Sampler sampler = shuffled(1000, 4);
  const auto reference = order(sampler, 0);
  EXPECT_EQ(order(shuffled(1000, 4), 0), reference);
  for (const auto& other : {order(sampler, 1), order(sampler, 2), order(shuffled(1000, 5), 0)}) {
    std::size_t same = 0;
    for (std::size_t offset = 0; offset < 1000; ++offset)
      same += other[offset] == reference[offset] ? 1 : 0;
    EXPECT_LT(same, 12U);  // two independent orders agree at one position on average
  }
  EXPECT_NE(order(shuffled(1000, 4), 1), order(shuffled(1000, 5), 0))
      << "seed and epoch must not be added up";
}

TEST(Sampler, IsFarFromSorted) {
  const auto records = order(shuffled(10'000, 1), 0);
  double ascents = 0;
  double moved = 0;
  for (std::size_t offset = 1; offset < records.size(); ++offset) {
    ascents += records[offset] > records[offset - 1] ? 1 : 0;
    moved += std::abs(static_cast<double>(records[offset]) - static_cast<double>(offset));
  }
  EXPECT_NEAR(ascents / 10'000, 0.5, 0.02);
  EXPECT_NEAR(moved / 10'000, 10'000.0 / 3, 150);
}

TEST(Sampler, UnshuffledIsInOrderInEveryEpoch) {
  const Sampler sampler(Order::sequential(), 100, 4);
  std::vector<std::uint64_t> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order(sampler, 0), expected);
  EXPECT_EQ(order(sampler, 3), expected);
}

TEST(Sampler, RefusesNoRecords) {
  try {
    (void)shuffled(0, 1);
    FAIL() << "a sampler of nothing was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  }
}

// Over all seeds, every record comes equally often at every position.
TEST(Sampler, PlacesAreUniformOverSeeds) {
  for (const std::uint64_t size : {2U, 3U, 4U, 5U, 6U, 7U, 9U, 16U, 17U, 30U}) {
    constexpr std::uint64_t seeds = 20'000;
    std::vector<std::uint64_t> counts(size * size);
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const Sampler sampler = shuffled(size, seed);
      for (std::uint64_t offset = 0; offset < size; ++offset)
        ++counts[offset * size + sampler.at(0, offset)];
    }
    const double degrees = static_cast<double>((size - 1) * (size - 1));
    EXPECT_LT(chi_square(counts), chi_square_limit(degrees)) << "size " << size;
  }
}

TEST(Sampler, PlacesAreUniformOverEpochs) {
  for (const std::uint64_t size : {3U, 5U, 10U}) {
    const Sampler sampler = shuffled(size, 77);
    std::vector<std::uint64_t> counts(size * size);
    for (std::uint64_t epoch = 0; epoch < 20'000; ++epoch)
      for (std::uint64_t offset = 0; offset < size; ++offset)
        ++counts[offset * size + sampler.at(epoch, offset)];
    const double degrees = static_cast<double>((size - 1) * (size - 1));
    EXPECT_LT(chi_square(counts), chi_square_limit(degrees)) << "size " << size;
  }
}

// The Feistel network alone produced even orders of 6 records more often than odd ones.
TEST(Sampler, AllOrdersOfAHandfulAreEquallyLikely) {
  for (const auto& [size, orders] :
       {std::pair<std::uint64_t, std::size_t>{3, 6}, {4, 24}, {5, 120}, {6, 720}}) {
    std::map<std::vector<std::uint64_t>, std::uint64_t> numbers;
    for (std::uint64_t seed = 0; seed < 60'000; ++seed) ++numbers[order(shuffled(size, seed), 0)];
    std::vector<std::uint64_t> counts;
    for (const auto& [sequence, count] : numbers) counts.push_back(count);
    ASSERT_EQ(counts.size(), orders) << "size " << size;
    EXPECT_LT(chi_square(counts), chi_square_limit(static_cast<double>(orders - 1)))
        << "size " << size;
  }
}

// A single swap turns an odd order into an even one. Both kinds come equally often.
TEST(Sampler, OddOrdersComeAsOftenAsEvenOnes) {
  for (const std::uint64_t size : {4U, 7U, 16U, 17U, 40U, 64U}) {
    std::vector<std::uint64_t> counts(2);
    for (std::uint64_t seed = 0; seed < 4000; ++seed) {
      const std::vector<std::uint64_t> records = order(shuffled(size, seed), 0);
      std::uint64_t inversions = 0;
      for (std::size_t n = 0; n < size; ++n)
        for (std::size_t before = 0; before < n; ++before)
          inversions += records[before] > records[n] ? 1 : 0;
      ++counts[inversions % 2];
    }
    EXPECT_LT(chi_square(counts), chi_square_limit(1)) << "size " << size;
  }
}

// Every order of a tiny dataset comes.
TEST(Sampler, AllOrdersComeForTinySizes) {
  for (const auto& [size, orders] :
       {std::pair<std::uint64_t, std::size_t>{2, 2}, {3, 6}, {4, 24}, {5, 120}}) {
    constexpr double seeds = 24'000;
    std::map<std::vector<std::uint64_t>, double> counts;
    for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(seeds); ++seed)
      ++counts[order(shuffled(size, seed), 0)];
    ASSERT_EQ(counts.size(), orders) << "size " << size;
    for (const auto& [sequence, count] : counts) {
      EXPECT_GT(count, 0.6 * seeds / static_cast<double>(orders))
          << ::testing::PrintToString(sequence);
      EXPECT_LT(count, 1.5 * seeds / static_cast<double>(orders))
          << ::testing::PrintToString(sequence);
    }
  }
}

// Neighbours in an epoch are not neighbours in the dataset.
TEST(Sampler, DistancesOfNeighboursAreUniform) {
  const std::uint64_t size = 101;
  std::vector<std::uint64_t> counts(size);
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const auto records = order(shuffled(size, seed), 0);
    for (std::size_t offset = 0; offset + 1 < size; offset += 2)
      ++counts[(records[offset + 1] + size - records[offset]) % size];
  }
  EXPECT_EQ(counts[0], 0U);
  EXPECT_LT(chi_square(std::span(counts).subspan(1)),
            chi_square_limit(static_cast<double>(size - 2)));
}

}  // namespace
}  // namespace millrace
