// SPDX-License-Identifier: Apache-2.0
#include "cache/recoded_records.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "cache/sample_cache.h"

namespace millrace {
namespace {

using Form = std::vector<std::byte>;

constexpr std::size_t overhead = RecodedRecords::overhead_bytes;

Form form_of(const RecodedRecords& records, std::uint64_t record) {
  const std::span<const std::byte> found = records.find(record);
  return {found.begin(), found.end()};
}

TEST(RecodedRecords, GivesWhatWasKeptFirst) {
  RecodedRecords records(10, std::make_shared<CacheBudget>());
  const Form first(100, std::byte{1});
  records.keep(3, first);
  EXPECT_EQ(form_of(records, 3), Form()) << "nothing was allowed yet";
  EXPECT_FALSE(records.wants(3, 1));
  records.raise_limit(10'000);
  EXPECT_TRUE(records.wants(3, 100));
  records.keep(3, first);
  EXPECT_EQ(form_of(records, 3), first);
  EXPECT_FALSE(records.wants(3, 100));
  records.keep(3, Form(50, std::byte{2}));
  EXPECT_EQ(form_of(records, 3), first);
  EXPECT_TRUE(records.wants(9, 100));
  records.keep(9, {});
  EXPECT_EQ(form_of(records, 9), Form());
  EXPECT_FALSE(records.wants(9, 100)) << "it has no form";
  records.keep(10, first);
  EXPECT_EQ(form_of(records, 10), Form()) << "beyond the dataset";
  EXPECT_FALSE(records.wants(10, 100));
}

TEST(RecodedRecords, TakeNoMoreThanTheyMay) {
  for (const std::size_t entries : {0U, 1U, 5U})
    for (const std::size_t more : {0U, 1U, 1000U}) {
      const auto budget = std::make_shared<CacheBudget>();
      const std::size_t table = 7 * 8 + overhead;
      const std::size_t limit = table + entries * (2000 + overhead) + more;
      {
        RecodedRecords records(7, budget);
        records.raise_limit(limit);
        EXPECT_EQ(records.has_table(), limit > table);
        for (std::uint64_t record = 0; record < 7; ++record)
          records.keep(record, Form(2000, std::byte{1}));
        EXPECT_EQ(records.bytes(), limit > table ? limit - more : 0);
        EXPECT_EQ(budget->bytes(), records.bytes());
        EXPECT_FALSE(records.wants(6, 1)) << "it is full, or the record is kept";
        for (std::uint64_t record = 0; record < 7; ++record)
          EXPECT_EQ(records.find(record).empty(), record >= entries);
        records.raise_limit(100'000);
        EXPECT_TRUE(records.wants(6, 2000)) << "more was allowed";
      }
      EXPECT_EQ(budget->bytes(), 0U);
    }
}

TEST(RecodedRecords, AreNotClosedByOneThatIsTooLarge) {
  RecodedRecords records(4, std::make_shared<CacheBudget>());
  records.raise_limit(2'000'000);
  EXPECT_FALSE(records.wants(0, 2'000'000));
  records.keep(0, Form(3'000'000, std::byte{1}));
  EXPECT_FALSE(records.wants(0, 1000)) << "it would not fit again";
  EXPECT_TRUE(records.wants(1, 1000));
}

TEST(RecodedRecords, TakeALargeOneThatALaterLimitHasRoomFor) {
  RecodedRecords records(4, std::make_shared<CacheBudget>());
  records.raise_limit(2'000'000);
  const Form large(3'000'000, std::byte{1});
  records.keep(0, large);
  records.keep(1, {});
  EXPECT_FALSE(records.wants(0, 1000));
  records.raise_limit(2'000'000);
  EXPECT_FALSE(records.wants(0, 1000)) << "the limit has not grown";
  records.raise_limit(5'000'000);
  EXPECT_TRUE(records.wants(0, large.size()));
  EXPECT_FALSE(records.wants(1, 1000)) << "it has no form";
  records.keep(0, large);
  EXPECT_EQ(form_of(records, 0), large);
}

TEST(RecodedRecords, ShareABudgetWithSamples) {
  const auto budget = std::make_shared<CacheBudget>();
  RecodedRecords records(10, budget);
  SampleCache samples(10, 1000, budget);
  records.raise_limit(100'000);
  records.keep(0, Form(80'000, std::byte{1}));
  samples.raise_limit(100'000);
  EXPECT_LT(samples.samples_that_fit(), 20U);
  while (!samples.take().empty()) continue;
  EXPECT_EQ(budget->bytes(), records.bytes() + samples.bytes());
  EXPECT_LE(budget->bytes(), 100'000U);
  EXPECT_GT(samples.bytes(), 10'000U);
  EXPECT_FALSE(records.wants(1, 5000));
}

TEST(RecodedRecords, AreForManyThreads) {
  constexpr std::uint64_t count = 500;
  const auto budget = std::make_shared<CacheBudget>();
  RecodedRecords records(count, budget);
  records.raise_limit(100'000);
  {
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < 4; ++thread)
      threads.emplace_back([&, thread] {
        for (std::uint64_t n = 0; n < 10'000; ++n) {
          const std::uint64_t record = (n * 7 + thread) % count;
          if (records.wants(record, 100))
            records.keep(record,
                         Form(record % 5 == 0 ? 0 : 100 + record, static_cast<std::byte>(record)));
          const std::span<const std::byte> found = records.find(record);
          if (!found.empty()) {
            ASSERT_EQ(found.size(), 100 + record);
          }
          ASSERT_TRUE(std::ranges::all_of(
              found, [=](std::byte byte) { return byte == static_cast<std::byte>(record); }));
        }
      });
  }
  EXPECT_LE(budget->bytes(), 100'000U);
  EXPECT_GT(budget->bytes(), 95'000U);
  EXPECT_EQ(budget->bytes(), records.bytes());
}

}  // namespace
}  // namespace millrace
