// SPDX-License-Identifier: Apache-2.0
//
// Tests for orders of all modes: subsets, repetition, replacements, hashes, refused options.
#include <gmock/gmock.h>
#include <millrace/error.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "loader/order/chi_square.h"
#include "loader/order/drawn.h"

namespace millrace {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using namespace testing;

TEST(Order, IsShuffledUnlessSaidOtherwise) {
  EXPECT_EQ(epoch_of(Sampler(Order(), 100, 3), 2), epoch_of(Sampler(Order::shuffled(), 100, 3), 2));
}

TEST(Order, ASubsetIsAllThatComes) {
  const std::vector<std::uint64_t> some{3, 14, 15, 92, 65};
  for (const Order& order :
       {Order::shuffled(), Order::blocks({.block_records = 2, .window_blocks = 2})}) {
    const Sampler sampler(order.subset(some), 100, 4);
    EXPECT_EQ(sampler.epoch_size(), 5U);
    for (std::uint64_t epoch = 0; epoch < 10; ++epoch)
      EXPECT_THAT(epoch_of(sampler, epoch), ::testing::UnorderedElementsAreArray(some));
  }
  EXPECT_EQ(epoch_of(Sampler(Order::sequential().subset(some), 100, 4), 1), some);
}

TEST(Order, ASubsetMayListARecordTwice) {
  EXPECT_THAT(epoch_of(Sampler(Order::shuffled().subset({7, 7, 2}), 10, 4), 0),
              UnorderedElementsAre(7, 7, 2));
}

TEST(Order, ASubsetsSubsetCountsItsPlaces) {
  const Order order = Order::sequential().subset({10, 20, 30, 40}).subset({3, 1});
  EXPECT_THAT(epoch_of(Sampler(order, 50, 4), 0), ElementsAre(40, 20));
}

TEST(Order, AFilterKeepsWhatItIsToldTo) {
  const Order order =
      Order::sequential().filtered(20, [](std::uint64_t index) { return index % 7 == 3; });
  EXPECT_THAT(epoch_of(Sampler(order, 20, 4), 0), ElementsAre(3, 10, 17));
  const Order even = Order::sequential().subset({5, 6, 7, 8}).filtered(4, [](std::uint64_t place) {
    return place % 2 == 0;
  });
  EXPECT_THAT(epoch_of(Sampler(even, 20, 4), 0), ElementsAre(5, 7)) << "of a subset, places count";
}

TEST(Order, WeightsAndPartsAreThoseOfTheSubset) {
  const Sampler weighted(Order::weighted({0, 1, 0}).subset({10, 20, 30}), 50, 4);
  EXPECT_THAT(epoch_of(weighted, 0), ElementsAre(20, 20, 20));
  const Sampler mixed(Order::mixed({{2, 0}, {1, 1}}).subset({10, 20, 30}), 50, 4);
  EXPECT_THAT(epoch_of(mixed, 0), ElementsAre(30, 30, 30));
}

TEST(Order, NewWeightsHoldFromTheirEpochOn) {
  const std::vector<double> zeroth{1, 2, 3, 0};
  const std::vector<double> second{0, 5, 1, 1};
  const std::vector<double> fifth{4, 0, 0, 1};
  const auto sampler_of = [](const Order& order) {
    return Sampler(order.subset({9, 3, 4, 7}).repeated(2), 10, 4);
  };
  const Order base = Order::weighted(zeroth, 30);
  const Sampler sampler = sampler_of(base.reweighted(5, fifth).reweighted(2, second));
  EXPECT_THAT(sampler.reweighted_epochs(), ElementsAre(2, 5));
  EXPECT_EQ(sampler.epoch_size(), 60U);
  for (std::uint64_t epoch = 0; epoch < 8; ++epoch) {
    const Sampler alone = sampler_of(Order::weighted(epoch < 2   ? zeroth
                                                     : epoch < 5 ? second
                                                                 : fifth,
                                                     30));
    EXPECT_EQ(epoch_of(sampler, epoch), epoch_of(alone, epoch)) << epoch;
    EXPECT_EQ(sampler.hash(epoch), alone.hash()) << epoch;
    Random random(4, epoch, 1);
    Random same(4, epoch, 1);
    EXPECT_EQ(sampler.replacement(random, epoch), alone.replacement(same)) << epoch;
  }
  EXPECT_EQ(epoch_of(sampler_of(base.reweighted(0, fifth)), 0),
            epoch_of(sampler_of(Order::weighted(fifth, 30)), 0));
  EXPECT_EQ(epoch_of(sampler_of(base.reweighted(1, fifth).reweighted(1, second)), 1),
            epoch_of(sampler_of(Order::weighted(second, 30)), 1))
      << "the last ones for an epoch count";
}

TEST(Order, RepeatedRecordsComeSideBySide) {
  const Sampler once(Order::shuffled(), 50, 4);
  const Sampler sampler(Order::shuffled().repeated(3), 50, 4);
  EXPECT_EQ(sampler.epoch_size(), 150U);
  for (std::uint64_t position = 0; position < 400; ++position)
    EXPECT_EQ(sampler(position), once(position / 3));
  EXPECT_EQ(Sampler(Order::shuffled().repeated(3).repeated(2), 50, 4).epoch_size(), 300U);
  EXPECT_THAT(epoch_of(Sampler(Order::sequential().repeated(2).subset({8, 9}), 50, 4), 0),
              ElementsAre(8, 8, 9, 9));
}

TEST(Order, ReplacementsAreDrawnByItsOwnOdds) {
  const auto draws = [](const Order& order) {
    const Sampler sampler(order, 10, 4);
    std::vector<std::uint64_t> counts(10);
    for (std::uint64_t position = 0; position < 20'000; ++position) {
      Random random(4, position, 1);
      ++counts[sampler.replacement(random)];
    }
    return counts;
  };
  for (const Order& order :
       {Order::shuffled(), Order::sequential(), Order::blocks(), Order::shuffled().repeated(4)}) {
    EXPECT_LT(chi_square(draws(order)), chi_square_limit(9));
    for (std::uint64_t position = 0; position < 100; ++position) {
      Random random(4, position, 1);
      EXPECT_EQ(Sampler(order, 10, 4).replacement(random), Random(4, position, 1).below(10))
          << "what it always was";
    }
  }
  std::vector<std::uint64_t> counts = draws(Order::shuffled().subset({2, 5, 7}));
  EXPECT_LT(chi_square(std::vector{counts[2], counts[5], counts[7]}), chi_square_limit(2));
  EXPECT_EQ(counts[2] + counts[5] + counts[7], 20'000U);

  counts = draws(Order::weighted({0, 0, 1, 0, 0, 3, 0, 0, 0, 0}));
  EXPECT_EQ(counts[2] + counts[5], 20'000U);
  EXPECT_NEAR(static_cast<double>(counts[2]), 5000, 250);

  counts = draws(Order::mixed({{4, 3}, {2, 0}, {4, 1}}));
  EXPECT_EQ(counts[4] + counts[5], 0U);
  EXPECT_LT(chi_square(std::span(counts).first(4)), chi_square_limit(3));
  EXPECT_LT(chi_square(std::span(counts).last(4)), chi_square_limit(3));
  EXPECT_NEAR(static_cast<double>(counts[0] + counts[1] + counts[2] + counts[3]), 15'000, 250);
}

std::vector<Order> different_orders() {
  const std::vector<double> weights{1, 2, 3, 4};
  std::vector<double> other_weights = weights;
  other_weights[3] = std::nextafter(4.0, 5.0);
  return {Order::shuffled(),
          Order::sequential(),
          Order::blocks({.block_records = 2, .window_blocks = 2}),
          Order::blocks({.block_records = 3, .window_blocks = 2}),
          Order::blocks({.block_records = 2, .window_blocks = 3}),
          Order::weighted(weights),
          Order::weighted(other_weights),
          Order::weighted(weights, 5),
          Order::mixed({{1, 1}, {3, 1}}),
          Order::mixed({{1, 1}, {3, 2}}),
          Order::mixed({{2, 1}, {2, 1}}),
          Order::mixed({{1, 1}, {3, 1}}, 5),
          Order::mixed({{1, 1}, {2, 1}, {1, 1}}),
          Order::shuffled().repeated(2),
          Order::shuffled().repeated(3),
          Order::shuffled().subset({0, 1, 2, 3}),
          Order::shuffled().subset({0, 1, 3, 2}),
          Order::shuffled().subset({0, 1, 2})};
}

TEST(Order, HashTellsOrdersApart) {
  std::set<std::uint64_t> hashes;
  for (const Order& order : different_orders()) {
    EXPECT_EQ(Sampler(order, 4, 1).hash(), Sampler(order, 4, 2).hash())
        << "the seed is not of the order";
    EXPECT_TRUE(hashes.insert(Sampler(order, 4, 1).hash()).second) << hashes.size();
  }
  EXPECT_TRUE(hashes.insert(Sampler(Order::shuffled(), 5, 1).hash()).second)
      << "the number of records";
  EXPECT_TRUE(hashes.insert(Sampler(Order::shuffled().subset({0, 1, 2}), 5, 1).hash()).second);
}

TEST(Order, HashIsTheSameForTheSameOrder) {
  const auto hash = [](const Order& order) { return Sampler(order, 4, 1).hash(); };
  EXPECT_EQ(hash(Order::weighted({1, 2, 3, 4})), hash(Order::weighted({1, 2, 3, 4}, 4)));
  EXPECT_EQ(hash(Order::shuffled().repeated(6)), hash(Order::shuffled().repeated(2).repeated(3)));
  EXPECT_EQ(hash(Order::shuffled().repeated(1)), hash(Order()));
  EXPECT_EQ(hash(Order::shuffled().subset({3, 2, 1}).subset({2, 0})),
            hash(Order::shuffled().subset({1, 3})));
  // A run's state contains the hash, which is compared on any machine.
  EXPECT_EQ(hash(Order::shuffled()), 2873659166582247978U);
  EXPECT_EQ(
      hash(Order::blocks({.block_records = 2, .window_blocks = 2}).subset({3, 1}).repeated(2)),
      6992999717421605593U);
  EXPECT_EQ(hash(Order::weighted({1, 2, 3, 4})), 2528036102662828309U);
  EXPECT_EQ(hash(Order::mixed({{1, 1}, {3, 0.5}})), 9014546731008640001U);
}

TEST(Order, RefusesWhatMakesNoSense) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double no_number = std::numeric_limits<double>::quiet_NaN();
  const auto run = [](const Order& order) { (void)Sampler(order, 10, 1); };
  const std::vector<std::pair<std::function<void()>, std::string>> cases{
      {[&] { (void)Order::blocks({.block_records = 0}); }, "block_records is 0"},
      {[&] { (void)Order::blocks({.window_blocks = 0}); }, "window_blocks is 0"},
      {[&] { (void)Order::weighted({}); }, "there are no weights"},
      {[&] {
         (void)Order::weighted({1, 2, -0.5});
       },
       "weight 2 is -0.5"},
      {[&] {
         (void)Order::weighted({1, no_number});
       },
       "weight 1 is nan"},
      {[&] {
         (void)Order::weighted({infinity, 1});
       },
       "weight 0 is inf"},
      {[&] {
         (void)Order::weighted({0, 0, 0});
       },
       "all 3 weights are 0"},
      {[&] {
         (void)Order::weighted({1, 2}).reweighted(3, {1});
       },
       "there are 1 new weights, but the order has 2"},
      {[&] {
         (void)Order::weighted({1, 2}).reweighted(3, {1, -2});
       },
       "weight 1 is -2"},
      {[&] { (void)Order::shuffled().reweighted(3, {1}); }, "it has no weights to change"},
      {[&] { (void)Order::mixed({}); }, "no parts"},
      {[&] {
         (void)Order::mixed({{5, 1}, {5, -1}});
       },
       "weight of part 1 is -1"},
      {[&] {
         (void)Order::mixed({{5, 0}, {5, 0}});
       },
       "weights of all 2 parts are 0"},
      {[&] {
         (void)Order::mixed({{5, 1}, {0, 1}});
       },
       "part 1 has no records"},
      {[&] {
         (void)Order::mixed({{5, 1}, {UINT64_MAX, 1}});
       },
       "more than 2^64"},
      {[&] { (void)Order().subset({}); }, "subset is empty"},
      {[&] {
         (void)Order().subset({1, 2}).subset({0, 2});
       },
       "index 1 of the subset is 2, but the outer subset has 2"},
      {[&] { (void)Order().filtered(9, [](std::uint64_t) { return false; }); }, "keeps none of 9"},
      {[&] { (void)Order().repeated(0); }, "repeated 0 times"},
      {[&] { (void)Order().repeated(UINT64_MAX).repeated(2); }, "too often"},
      {[&] { run(Order().repeated(UINT64_MAX)); }, "an epoch of 10 positions is repeated"},
      {[&] {
         run(Order().subset({9, 10}));
       },
       "index 1 of the subset is 10, but the dataset has 10 records"},
      {[&] {
         run(Order::weighted({1, 2}));
       },
       "there are 2 weights, but the dataset has 10 records"},
      {[&] {
         run(Order::weighted({1, 2}).subset({1, 2, 3}));
       },
       "there are 2 weights, but the subset has 3 records"},
      {[&] {
         run(Order::mixed({{5, 1}, {6, 1}}));
       },
       "its parts have 11 records, but the dataset has 10"},
      {[&] {
         run(Order::mixed({{5, 1}, {5, 1e-9}}));
       },
       "weight of part 1 is 1e-09, less than one sample in 2^24"},
      {[&] { (void)Sampler(Order(), 0, 1); }, "dataset is empty"},
      {[&] { (void)Sampler(Order(), UINT64_MAX, 1); }, "more than 2^63"},
  };
  for (const auto& [call, expected] : cases) {
    try {
      call();
      ADD_FAILURE() << "was not refused: " << expected;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << expected;
      EXPECT_THAT(error.what(), HasSubstr(expected));
    }
  }
}

}  // namespace
}  // namespace millrace
