// SPDX-License-Identifier: Apache-2.0
//
// Tests of the reference for erasing and mixing against a plain computation of each pixel.
#include <gtest/gtest.h>
#include <millrace/mix_work.h>

#include <functional>
#include <string>
#include <vector>

#include "loader/device/mixes.h"

namespace millrace {
namespace {

using testing::Mixes;

bool box_has(const std::int32_t* box, std::size_t x, std::size_t y) {
  const auto within = [](std::size_t at, std::int32_t begin, std::int32_t length) {
    return static_cast<std::int64_t>(at) >= begin &&
           static_cast<std::int64_t>(at) < std::int64_t{begin} + length;
  };
  return within(x, box[0], box[2]) && within(y, box[1], box[3]);
}

/// Returns the images after erasing, mixing and flipping, all by copies.
std::vector<std::uint8_t> plainly(const MixWork& work) {
  const std::size_t bytes = work.height * work.width * work.channels;
  const auto place = [&](std::size_t sample, std::size_t x, std::size_t y) {
    return sample * bytes + (y * work.width + x) * work.channels;
  };
  std::vector<std::uint8_t> upright(work.samples * bytes);
  const auto for_each =
      [&](const std::function<void(std::size_t, std::size_t, std::size_t, std::size_t)>& pixel) {
        for (std::size_t sample = 0; sample < work.samples; ++sample)
          for (std::size_t y = 0; y < work.height; ++y)
            for (std::size_t x = 0; x < work.width; ++x)
              for (std::size_t channel = 0; channel < work.channels; ++channel)
                pixel(sample, x, y, channel);
      };
  for_each([&](std::size_t sample, std::size_t x, std::size_t y, std::size_t channel) {
    const bool flip = work.flips != nullptr && work.flips[sample] != 0;
    std::uint8_t value = work.images[place(sample, flip ? work.width - 1 - x : x, y) + channel];
    if (work.erases != nullptr) {
      const std::int32_t* const erase = work.erases + sample * MixWork::erase_numbers;
      if (box_has(erase, x, y)) value = static_cast<std::uint8_t>(erase[4 + channel]);
    }
    upright[place(sample, x, y) + channel] = value;
  });
  if (work.mixes == nullptr) return upright;
  std::vector<std::uint8_t> made = upright;
  for_each([&](std::size_t sample, std::size_t x, std::size_t y, std::size_t channel) {
    const std::int32_t* const mix = work.mixes + sample * MixWork::mix_numbers;
    const std::size_t at = place(sample, x, y) + channel;
    const std::uint8_t other = upright[place(work.samples - 1 - sample, x, y) + channel];
    const int sum = upright[at] * mix[0] + other * (256 - mix[0]) + 128;
    const bool alone = sample == work.samples - 1 - sample;
    made[at] = alone                    ? upright[at]
               : box_has(mix + 1, x, y) ? other
                                        : static_cast<std::uint8_t>(sum / 256);
  });
  return made;
}

/// Returns the images with only the flips of the work.
std::vector<std::uint8_t> flipped(const MixWork& work) {
  MixWork images = work;
  images.erases = nullptr;
  images.mixes = nullptr;
  return plainly(images);
}

class MixOnHost : public ::testing::TestWithParam<Mixes> {};

TEST_P(MixOnHost, IsThePlainComputation) {
  for (std::uint64_t seed = 0; seed < 40; ++seed)
    for (unsigned parts = 0; parts < 8; ++parts) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", parts " + std::to_string(parts));
      Mixes mixes = GetParam();
      mixes.make(seed);
      const MixWork work = mixes.work(parts);
      const std::vector<std::uint8_t> expected = plainly(work);
      work.run_on_host();
      ASSERT_TRUE(flipped(work) == expected);
    }
}
INSTANTIATE_TEST_SUITE_P(Sizes, MixOnHost,
                         ::testing::Values(Mixes{1, 4, 5, 3}, Mixes{2, 1, 1, 1}, Mixes{2, 3, 4, 3},
                                           Mixes{6, 7, 9, 3}, Mixes{5, 8, 6, 4},
                                           Mixes{3, 5, 33, 2}));

/// Runs items from the last to the first.
class Backwards final : public HostWorkers {
 public:
  void share(std::size_t items, const std::function<void(std::size_t)>& item) noexcept override {
    while (items > 0) item(--items);
  }
};

TEST(MixOnHostShared, IsTheSame) {
  Mixes mixes{7, 6, 5, 3};
  mixes.make(1);
  Mixes shared = mixes;
  mixes.work(7).run_on_host();
  Backwards workers;
  MixWork work = shared.work(7);
  work.workers = &workers;
  work.run_on_host();
  EXPECT_EQ(shared.images, mixes.images);
}

}  // namespace
}  // namespace millrace
