// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/mix_work.h>
#include <millrace/random.h>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <vector>

namespace millrace::testing {

/// Images of noise that are flipped, erased and mixed at random.
struct Mixes {
  static constexpr unsigned erased = 1;
  static constexpr unsigned mixed = 2;
  static constexpr unsigned flipped = 4;

  std::size_t samples;
  std::size_t height;
  std::size_t width;
  std::size_t channels;
  std::vector<std::uint8_t> images{};
  std::vector<std::uint8_t> flips{};
  std::vector<std::int32_t> erases{};
  std::vector<std::int32_t> mixes{};

  /// Makes other images for each `seed`. Among them are pairs with one weight and without a box,
  /// and samples that stay unchanged.
  void make(std::uint64_t seed) {
    Random random(seed, samples * height * width);
    images.resize(samples * height * width * channels);
    for (std::uint8_t& byte : images) byte = static_cast<std::uint8_t>(random());
    flips.clear();
    erases.clear();
    mixes.clear();
    const auto alike = static_cast<std::int32_t>(random.below(257));
    for (std::size_t sample = 0; sample < samples; ++sample) {
      flips.push_back(static_cast<std::uint8_t>(random.below(3)));
      add_box(erases, random, random.below(3) == 0);
      for (std::size_t channel = 0; channel < Conversion::max_channels; ++channel)
        erases.push_back(static_cast<std::int32_t>(random.below(256)));
      const std::uint64_t kind = random.below(4);
      mixes.push_back(kind == 0 ? 256 : kind == 1 ? alike : static_cast<int>(random.below(257)));
      add_box(mixes, random, kind < 2);
    }
  }

  /// Returns work with those of `erased`, `mixed` and `flipped` that `parts` names.
  MixWork work(unsigned parts) {
    return {.images = images.data(),
            .flips = (parts & flipped) != 0 ? flips.data() : nullptr,
            .erases = (parts & erased) != 0 ? erases.data() : nullptr,
            .mixes = (parts & mixed) != 0 ? mixes.data() : nullptr,
            .samples = samples,
            .height = height,
            .width = width,
            .channels = channels};
  }

  friend void PrintTo(const Mixes& mixes, std::ostream* out) {
    *out << mixes.samples << "x" << mixes.height << "x" << mixes.width << "x" << mixes.channels;
  }

 private:
  void add_box(std::vector<std::int32_t>& to, Random& random, bool empty) const {
    const auto place = [&](std::size_t length) {
      const std::uint64_t begin = random.below(length);
      return std::pair(static_cast<std::int32_t>(begin),
                       static_cast<std::int32_t>(random.below(length - begin) + 1));
    };
    const auto [x, box_width] = place(width);
    const auto [y, box_height] = place(height);
    to.insert(to.end(), {x, y, empty ? 0 : box_width, empty ? 0 : box_height});
  }
};

}  // namespace millrace::testing
