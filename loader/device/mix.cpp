// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/mix_arithmetic.h>
#include <millrace/mix_work.h>

#include <algorithm>
#include <functional>

namespace millrace {
namespace {

static_assert(MixWork::erase_numbers == 8 && MixWork::mix_numbers == 5, "as FieldSpec has them");

std::uint8_t* image_of(const MixWork& work, std::size_t sample) {
  return work.images + sample * work.height * work.width * work.channels;
}

bool mirrored(const MixWork& work, std::size_t sample) {
  return work.flips != nullptr && work.flips[sample] != 0;
}

void erase_box(const MixWork& work, std::size_t sample) {
  const std::int32_t* const erase = work.erases + sample * MixWork::erase_numbers;
  const auto width = static_cast<std::size_t>(erase[2]);
  const auto height = static_cast<std::size_t>(erase[3]);
  std::size_t x = static_cast<std::size_t>(erase[0]);
  if (mirrored(work, sample)) x = work.width - x - width;
  for (std::size_t row = 0; row < height; ++row) {
    std::uint8_t* to =
        image_of(work, sample) +
        ((static_cast<std::size_t>(erase[1]) + row) * work.width + x) * work.channels;
    for (std::size_t column = 0; column < width; ++column)
      for (std::size_t channel = 0; channel < work.channels; ++channel)
        *to++ = static_cast<std::uint8_t>(erase[4 + channel]);
  }
}

/// Mixes a pair of images that have the same weight and no box. Either both images are flipped or
/// none is.
void mix_alike(std::uint8_t* first, std::uint8_t* second, std::size_t bytes, std::uint16_t weight) {
  for (std::size_t n = 0; n < bytes; ++n) {
    const std::uint8_t own = first[n];
    const std::uint8_t other = second[n];
    first[n] = mixed(own, other, weight);
    second[n] = mixed(other, own, weight);
  }
}

/// Mixes sample `one` and its partner, which may be the same sample.
void mix_pair(const MixWork& work, std::size_t one) {
  const std::size_t two = work.samples - 1 - one;
  if (one == two) return;  // an image mixed with itself is unchanged
  const std::int32_t* const mix_one = work.mixes + one * MixWork::mix_numbers;
  const std::int32_t* const mix_two = work.mixes + two * MixWork::mix_numbers;
  if (unmixed(mix_one) && unmixed(mix_two)) return;
  const bool crossed = mirrored(work, one) != mirrored(work, two);
  if (!crossed && mix_one[0] == mix_two[0] && mix_one[3] == 0 && mix_two[3] == 0)
    return mix_alike(image_of(work, one), image_of(work, two),
                     work.height * work.width * work.channels,
                     static_cast<std::uint16_t>(mix_one[0]));
  for (std::size_t y = 0; y < work.height; ++y)
    for (std::size_t stored = 0; stored < work.width; ++stored) {
      // `stored` is the pixel's column in the stored images, `across` its column in the flipped
      // ones.
      const std::size_t across = work.width - 1 - stored;
      const auto x = static_cast<std::int32_t>(mirrored(work, one) ? across : stored);
      const auto row = static_cast<std::int32_t>(y);
      const bool in_one = lies_in(mix_one + 1, x, row);
      const bool in_two = lies_in(mix_two + 1, x, row);
      std::uint8_t* a = image_of(work, one) + (y * work.width + stored) * work.channels;
      std::uint8_t* b =
          image_of(work, two) + (y * work.width + (crossed ? across : stored)) * work.channels;
      for (std::size_t channel = 0; channel < work.channels; ++channel, ++a, ++b) {
        const std::uint8_t own = *a;
        const std::uint8_t other = *b;
        *a = in_one ? other : mixed(own, other, static_cast<std::uint16_t>(mix_one[0]));
        *b = in_two ? own : mixed(other, own, static_cast<std::uint16_t>(mix_two[0]));
      }
    }
}

}  // namespace

void MixWork::run_on_host() const {
  const std::size_t pairs = (samples + 1) / 2;
  const auto change_pair = [this](std::size_t one) {
    const std::size_t two = samples - 1 - one;
    if (erases != nullptr) {
      erase_box(*this, one);
      if (two != one) erase_box(*this, two);
    }
    if (mixes != nullptr) mix_pair(*this, one);
  };
  if (workers != nullptr && pairs > 1) return workers->share(pairs, std::ref(change_pair));
  for (std::size_t pair = 0; pair < pairs; ++pair) change_pair(pair);
}

}  // namespace millrace
