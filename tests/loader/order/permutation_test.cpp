// SPDX-License-Identifier: Apache-2.0
#include "order/permutation.h"

#include <gmock/gmock.h>
#include <millrace/random.h>

#include <algorithm>
#include <vector>

namespace millrace {
namespace {

TEST(Permutation, ManyAtOnceAreWhatEachIsAlone) {
  // Covers all sizes, and counts around the sizes of the chunks and lanes in which permutations are
  // applied.
  Random random(5, 0);
  for (const std::size_t count : {0U, 1U, 3U, 4U, 5U, 63U, 64U, 65U, 200U}) {
    std::vector<Permutation> permutations;
    std::vector<std::uint64_t> places;
    std::vector<std::uint64_t> expected;
    for (std::size_t n = 0; n < count; ++n) {
      const std::uint64_t size = 1 + (random.bits64() >> (1 + random.below(63)));
      permutations.emplace_back(size, random.bits64());
      places.push_back(random.below(size));
      expected.push_back(permutations.back()(places.back()));
    }
    Permutation::apply(permutations, places);
    EXPECT_EQ(places, expected) << count;
  }
}

TEST(Permutation, OfOneNumberLeavesAnyPlaceAsItIs) {
  std::vector<std::uint64_t> places{7, 0};
  Permutation::apply(std::vector<Permutation>(2), places);
  EXPECT_THAT(places, ::testing::ElementsAre(7, 0));
  EXPECT_EQ(Permutation()(7), 7U);
}

TEST(Permutation, KeysDependOnBothTheirSources) {
  EXPECT_NE(derived_key(1, 2), derived_key(2, 1));
  EXPECT_NE(derived_key(1, 0), derived_key(0, 1)) << "not added up";
}

}  // namespace
}  // namespace millrace
