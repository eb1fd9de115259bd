// SPDX-License-Identifier: Apache-2.0
#include "report/label_counts.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace millrace {
namespace {

using Sums = std::map<std::string, std::uint64_t>;

TEST(LabelCounts, CountsEachText) {
  LabelCounts counts;
  const char* const one = "one";
  const char* const two = "two";
  for (int n = 0; n < 3; ++n) counts.add(one);
  counts.add(two);
  Sums sums{{"one", 10}};
  counts.add_to(sums);
  EXPECT_EQ(sums, (Sums{{"one", 13}, {"two", 1}}));
}

TEST(LabelCounts, CountsTheRestAsOther) {
  LabelCounts counts;
  std::vector<std::string> texts;
  for (std::size_t n = 0; n < LabelCounts::most + 3; ++n) texts.push_back(std::to_string(n));
  for (const std::string& text : texts) counts.add(text.c_str());
  Sums sums;
  counts.add_to(sums);
  EXPECT_EQ(sums.size(), LabelCounts::most + 1);
  EXPECT_EQ(sums.at("other"), 3U);
}

TEST(LabelCounts, MayBeLookedAtMeanwhile) {
  LabelCounts counts;
  const std::vector<std::string> texts{"a", "b", "c"};
  std::jthread adds([&] {
    for (std::size_t n = 0; n < 3000; ++n) counts.add(texts[n % 3].c_str());
  });
  Sums sums;
  while (sums["c"] < 1000) {
    sums = {};
    counts.add_to(sums);
    for (const auto& [text, count] : sums) ASSERT_LE(count, 1000U) << text;
  }
  adds.join();
  sums = {};
  counts.add_to(sums);
  EXPECT_EQ(sums, (Sums{{"a", 1000}, {"b", 1000}, {"c", 1000}}));
}

}  // namespace
}  // namespace millrace
