// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/decode_budget.h>
#include <millrace/error.h>
#include <millrace/random.h>

#include <atomic>
#include <thread>
#include <vector>

namespace millrace {
namespace {

constexpr std::uint64_t mib = 1 << 20;

TEST(DecodeBudget, SmallImagesTakeNothing) {
  DecodeBudget budget({.max_decode_bytes = 100 * mib});
  const DecodeBudget::Lease all = budget.take(100 * mib);
  (void)budget.take(DecodeBudget::small_bytes);  // does not wait
}

TEST(DecodeBudget, GivesMoreThanItHasToOneAlone) {
  DecodeBudget budget({.max_decode_bytes = 40 * mib});
  (void)budget.take(1000 * mib);
  const DecodeBudget::Lease again = budget.take(1000 * mib);
}

TEST(DecodeBudget, MovedLeasesGiveBackOnce) {
  DecodeBudget budget({.max_decode_bytes = 100 * mib});
  DecodeBudget::Lease lease = budget.take(60 * mib);
  DecodeBudget::Lease moved = std::move(lease);
  lease = budget.take(40 * mib);
  moved = {};
  moved = budget.take(60 * mib);
  lease = {};
  std::atomic<bool> got = false;
  std::jthread other([&] {
    (void)budget.take(100 * mib);
    got = true;
  });
  EXPECT_FALSE(got);  // 60 MiB are taken
  moved = {};
  other.join();
  EXPECT_TRUE(got);
}

// Whoever waits is served, the largest among smaller ones as well, and never more is out than there
// is.
TEST(DecodeBudget, NeverGivesMoreThanItHasAndServesAll) {
  DecodeBudget budget({.max_decode_bytes = 100 * mib});
  std::atomic<std::uint64_t> taken = 0;
  std::atomic<std::uint64_t> most = 0;
  {
    std::vector<std::jthread> threads;
    for (unsigned number = 0; number < 8; ++number)
      threads.emplace_back([&, number] {
        Random random(number, 0);
        for (int n = 0; n < 500; ++n) {
          const std::uint64_t bytes = number == 0 ? 100 * mib : 33 * mib + random.below(30 * mib);
          const DecodeBudget::Lease lease = budget.take(bytes);
          const std::uint64_t now = taken += bytes;
          for (std::uint64_t seen = most; seen < now && !most.compare_exchange_weak(seen, now);)
            continue;
          std::this_thread::yield();
          taken -= bytes;
        }
      });
  }
  EXPECT_EQ(taken, 0U);
  EXPECT_LE(most, 100 * mib);
}

TEST(DecodeBudget, RefusesLimitsOfNothing) {
  for (const DecodeLimits& limits :
       {DecodeLimits{.max_pixels_per_byte = 0}, DecodeLimits{.max_scan_pixels = 0},
        DecodeLimits{.max_decode_bytes = 0}})
    EXPECT_THROW(DecodeBudget{limits}, Error);
}

}  // namespace
}  // namespace millrace
