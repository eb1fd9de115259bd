// SPDX-License-Identifier: Apache-2.0
#include "cache/sample_cache.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace millrace {
namespace {

/// Stores `value` in each byte of a record's entry. Returns whether there was room.
bool keep(SampleCache& cache, std::uint64_t record, std::uint8_t value) {
  const std::span<std::byte> room = cache.take();
  std::ranges::fill(room, static_cast<std::byte>(value));
  if (!room.empty()) cache.keep(record, room);
  return !room.empty();
}

TEST(SampleCache, GivesWhatWasKeptFirst) {
  SampleCache cache(10, 100);
  cache.raise_limit(1 << 20);
  EXPECT_TRUE(cache.find(3).empty());
  EXPECT_TRUE(keep(cache, 3, 7));
  EXPECT_TRUE(keep(cache, 4, 8));
  EXPECT_THAT(cache.find(3), ::testing::SizeIs(100));
  EXPECT_THAT(cache.find(3), ::testing::Each(std::byte{7}));
  const std::byte* const kept = cache.find(3).data();
  EXPECT_TRUE(keep(cache, 3, 9));
  EXPECT_EQ(cache.find(3).data(), kept) << "a reader may be at it";
  EXPECT_THAT(cache.find(3), ::testing::Each(std::byte{7}));
  EXPECT_TRUE(keep(cache, 10, 1)) << "there is room, but no such record";
  EXPECT_TRUE(cache.find(10).empty());
}

TEST(SampleCache, TakesNoMoreThanItMay) {
  constexpr std::uint64_t records = 5000;
  for (const std::size_t sample : {1U, 3000U, 150'528U, 20'000'000U})
    for (const std::size_t limit :
         {std::size_t{0}, std::size_t{40'000}, std::size_t{1} << 20, std::size_t{50'000'000}}) {
      SCOPED_TRACE(std::to_string(sample) + " bytes of " + std::to_string(limit));
      SampleCache cache(records, sample);
      cache.raise_limit(limit);
      std::uint64_t kept = 0;
      while (kept < records && keep(cache, kept, 1)) ++kept;
      EXPECT_LE(cache.bytes(), limit);
      EXPECT_EQ(kept, std::min(records, cache.samples_that_fit()));
      // 8 bytes for each record, a page for each allocation, and the unused rest of an allocation.
      if (limit >= 1 << 20 && kept < records) {
        EXPECT_GE(sample * (kept + 1) + 8 * records + 70'000, limit);
      }
      cache.raise_limit(limit / 2);
      EXPECT_EQ(keep(cache, records - 1, 1), kept < cache.samples_that_fit())
          << "it may still take as much";
    }
}

TEST(SampleCache, GivesRoomAgainThatWasNotUsed) {
  SampleCache cache(3, 500);
  cache.raise_limit(10'000);
  const std::uint64_t all = cache.samples_that_fit();
  for (int round = 0; round < 3; ++round) {
    std::vector<std::span<std::byte>> rooms;
    std::set<const std::byte*> places;
    for (auto room = cache.take(); !room.empty(); room = cache.take()) {
      std::ranges::fill(room, std::byte{1});
      rooms.push_back(room);
      places.insert(room.data());
    }
    EXPECT_EQ(rooms.size(), all);
    EXPECT_EQ(places.size(), all);
    for (const auto& room : rooms) cache.give_back(room);
  }
  EXPECT_LE(cache.bytes(), 10'000U);
  cache.raise_limit(20'000);
  EXPECT_GT(cache.samples_that_fit(), all);
}

TEST(SampleCache, IsForManyThreads) {
  constexpr std::uint64_t records = 500;
  constexpr std::size_t limit = 50'000;
  SampleCache cache(records, 100);
  cache.raise_limit(limit);
  std::atomic<std::uint64_t> found{0};
  {
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < 4; ++thread)
      threads.emplace_back([&, thread] {
        for (std::uint64_t n = 0; n < 5'000; ++n) {
          const std::uint64_t record = n * (7 + thread) % records;
          const std::span<const std::byte> kept = cache.find(record);
          for (const std::byte byte : kept) ASSERT_EQ(byte, static_cast<std::byte>(record));
          if (!kept.empty())
            ++found;
          else
            keep(cache, record, static_cast<std::uint8_t>(record));
        }
      });
  }
  EXPECT_LE(cache.bytes(), limit);
  EXPECT_GT(found, 5'000U);
  std::uint64_t kept = 0;
  for (std::uint64_t record = 0; record < records; ++record) kept += !cache.find(record).empty();
  EXPECT_EQ(kept, cache.samples_that_fit()) << "what two threads made is kept once";
}

}  // namespace
}  // namespace millrace
