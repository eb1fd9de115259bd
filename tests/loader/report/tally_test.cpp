// SPDX-License-Identifier: Apache-2.0
#include "report/tally.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace millrace {
namespace {

using Sums = std::map<std::string, std::uint64_t>;

TEST(Tally, CountsEachText) {
  Tally tally;
  const char* const one = "one";
  const char* const two = "two";
  for (int n = 0; n < 3; ++n) tally.add(one);
  tally.add(two);
  Sums sums{{"one", 10}};
  tally.add_to(sums);
  EXPECT_EQ(sums, (Sums{{"one", 13}, {"two", 1}}));
}

TEST(Tally, CountsTheRestAsOther) {
  Tally tally;
  std::vector<std::string> texts;
  for (std::size_t n = 0; n < Tally::most + 3; ++n) texts.push_back(std::to_string(n));
  for (const std::string& text : texts) tally.add(text.c_str());
  Sums sums;
  tally.add_to(sums);
  EXPECT_EQ(sums.size(), Tally::most + 1);
  EXPECT_EQ(sums.at("other"), 3U);
}

TEST(Tally, MayBeLookedAtMeanwhile) {
  Tally tally;
  const std::vector<std::string> texts{"a", "b", "c"};
  std::jthread adds([&] {
    for (std::size_t n = 0; n < 3000; ++n) tally.add(texts[n % 3].c_str());
  });
  Sums sums;
  while (sums["c"] < 1000) {
    sums = {};
    tally.add_to(sums);
    for (const auto& [text, count] : sums) ASSERT_LE(count, 1000U) << text;
  }
  adds.join();
  sums = {};
  tally.add_to(sums);
  EXPECT_EQ(sums, (Sums{{"a", 1000}, {"b", 1000}, {"c", 1000}}));
}

}  // namespace
}  // namespace millrace
