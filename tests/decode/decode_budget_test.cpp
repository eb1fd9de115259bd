// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/decode_budget.h>
#include <millrace/error.h>
#include <millrace/image_decoder.h>
#include <millrace/random.h>

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace millrace {
namespace {

constexpr std::uint64_t mib = 1 << 20;

TEST(DecodeBudget, SmallImagesTakeNothing) {
  DecodeBudget budget({.max_decode_bytes = 100 * mib});
  const DecodeBudget::Reservation all = budget.take(100 * mib);
  (void)budget.take(DecodeBudget::small_bytes);  // does not wait
}

TEST(DecodeBudget, GivesMoreThanItHasToOneAlone) {
  DecodeBudget budget({.max_decode_bytes = 40 * mib});
  (void)budget.take(1000 * mib);
  const DecodeBudget::Reservation again = budget.take(1000 * mib);
}

TEST(DecodeBudget, MovedReservationsGiveBackOnce) {
  DecodeBudget budget({.max_decode_bytes = 100 * mib});
  DecodeBudget::Reservation reservation = budget.take(60 * mib);
  DecodeBudget::Reservation moved = std::move(reservation);
  reservation = budget.take(40 * mib);
  moved = {};
  moved = budget.take(60 * mib);
  reservation = {};
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

// Every waiting thread is served, also the largest among smaller ones. The sum of the leases never
// exceeds the budget.
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
          const DecodeBudget::Reservation reservation = budget.take(bytes);
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

TEST(DecodeBudget, TheDefaultFollowsTheMemoryOfTheProcess) {
  EXPECT_EQ(decode_bytes_for(0), 512 * mib);
  EXPECT_EQ(decode_bytes_for(std::uint64_t{64} << 30), 512 * mib);
  EXPECT_EQ(decode_bytes_for(1024 * mib), 256 * mib);
  EXPECT_EQ(decode_bytes_for(128 * mib), 32 * mib);
  EXPECT_EQ(DecodeLimits().max_decode_bytes, default_decode_bytes());
}

TEST(DecodeBudget, TheLimitOfPixelsIsAnOption) {
  EXPECT_THROW(DecodeBudget({.max_pixels = 0}), Error);
  EXPECT_THROW(DecodeBudget({.max_pixels = 250'000'001}), Error);
  const auto open = [](const std::string& header, const DecodeLimits& limits) {
    const auto decoder = make_image_decoder(std::make_shared<DecodeBudget>(limits));
    const std::string image = header + std::string(6000, 'x');
    return decoder->open(std::as_bytes(std::span(image))).reason();
  };
  EXPECT_EQ(open("P5 75 80 255\n", {}), "");
  EXPECT_EQ(open("P5 75 80 255\n", {.max_pixels = 6000}), "");
  EXPECT_EQ(open("P5 75 80 255\n", {.max_pixels = 5999}),
            "75 x 80 pixels; at most 5999 are decoded (max_pixels)");
}

}  // namespace
}  // namespace millrace
