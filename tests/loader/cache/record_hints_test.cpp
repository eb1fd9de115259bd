// SPDX-License-Identifier: Apache-2.0
#include "cache/record_hints.h"

#include <gmock/gmock.h>

#include <thread>
#include <vector>

namespace millrace {
namespace {

using Hint = std::vector<std::byte>;

Hint hint_of(const RecordHints& hints, std::uint64_t record) {
  Hint hint{std::byte{99}};
  hints.read(record, hint);
  return hint;
}

TEST(RecordHints, GivesWhatWasKeptLast) {
  RecordHints hints;
  hints.raise_limit(1000);
  EXPECT_EQ(hint_of(hints, 5), Hint());
  const Hint first(10, std::byte{1});
  const Hint second(20, std::byte{2});
  hints.keep(5, first);
  hints.keep(5 + 64, second);
  EXPECT_EQ(hint_of(hints, 5), first);
  EXPECT_EQ(hint_of(hints, 5 + 64), second);
  hints.keep(5, second);
  EXPECT_EQ(hint_of(hints, 5), second);
  hints.keep(5, first);
  EXPECT_EQ(hint_of(hints, 5), first);
}

TEST(RecordHints, KeepsNoMoreThanItMay) {
  RecordHints hints;
  const Hint hint(400, std::byte{1});
  hints.keep(0, hint);
  EXPECT_EQ(hints.bytes(), 0U) << "nothing was allowed yet";
  hints.raise_limit(1000);
  for (std::uint64_t record = 0; record < 100; ++record) hints.keep(record, hint);
  EXPECT_GT(hints.bytes(), 800U);
  EXPECT_LE(hints.bytes(), 1000U);
  EXPECT_EQ(hint_of(hints, 0), hint);
  EXPECT_EQ(hint_of(hints, 1), hint);
  EXPECT_EQ(hint_of(hints, 2), Hint());
  hints.keep(0, Hint(500, std::byte{2}));
  EXPECT_EQ(hint_of(hints, 0), hint) << "one that does not fit leaves the one before";
  hints.keep(0, Hint(10, std::byte{3}));
  hints.keep(1, Hint(500, std::byte{4}));
  EXPECT_EQ(hint_of(hints, 1).size(), 500U) << "room that was given back";
  hints.raise_limit(10);
  EXPECT_LE(hints.bytes(), 1000U);
  hints.raise_limit(2000);
  hints.keep(2, hint);
  EXPECT_EQ(hint_of(hints, 2), hint) << "more was allowed";
}

TEST(RecordHints, IsForManyThreads) {
  RecordHints hints;
  hints.raise_limit(200'000);
  {
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < 4; ++thread)
      threads.emplace_back([&, thread] {
        for (std::uint64_t n = 0; n < 20'000; ++n) {
          const std::uint64_t record = n * 7 % 1000;
          if ((n + thread) % 3 == 0)
            hints.keep(record, Hint(1 + (n + thread) % 300, static_cast<std::byte>(record)));
          for (const std::byte byte : hint_of(hints, record))
            ASSERT_EQ(byte, static_cast<std::byte>(record));
        }
      });
  }
  EXPECT_LE(hints.bytes(), 200'000U);
  EXPECT_GT(hints.bytes(), 100'000U);
}

}  // namespace
}  // namespace millrace
