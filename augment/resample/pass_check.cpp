// SPDX-License-Identifier: Apache-2.0
#include "resample/pass_check.h"

#include <millrace/detail/resample.h>
#include <millrace/detail/vector_checks.h>
#include <xxhash.h>

#include <vector>

namespace millrace {
namespace {

constexpr Size source{90, 26};

std::vector<std::uint8_t> made_up_picture() {
  std::vector<std::uint8_t> pixels(3 * static_cast<std::size_t>(source.width * source.height));
  std::uint32_t last = 1;
  for (std::uint8_t& level : pixels) {
    last = last * 1664525U + 1013904223U;
    level = static_cast<std::uint8_t>(last >> 24U);
  }
  return pixels;
}

struct Case {
  Size to;
  Interpolation interpolation = Interpolation::bilinear;
  bool mirrored = false;
};

/// The passes have separate code for some weight counts, in pairs and in fours. Each such count has
/// a case. Some rows are shorter than a vector, others longer, with and without a remainder.
constexpr Case cases[] = {
    {{99, 31}},
    {{45, 19}, Interpolation::bilinear, true},
    {{29, 9}},
    {{22, 7}},
    {{18, 5}},
    {{9, 3}},
    {{64, 21}, Interpolation::bicubic},
    {{95, 3}, Interpolation::bicubic},
};

}  // namespace

/// Makes resamplers without the check.
struct ResampleCheck {
  static Resampler resampler() { return Resampler(Resampler::Unchecked{}); }
};

std::uint64_t resample_checksum() {
  const std::vector<std::uint8_t> pixels = made_up_picture();
  const PixelView view{pixels.data(), source.width, source.height,
                       3 * static_cast<std::size_t>(source.width)};
  XXH3_state_t state{};
  XXH3_64bits_reset(&state);
  Resampler resampler = ResampleCheck::resampler();
  std::vector<std::uint8_t> made;
  for (const Case& one : cases) {
    const std::size_t row = 3 * static_cast<std::size_t>(one.to.width);
    made.resize(row * static_cast<std::size_t>(one.to.height));
    resampler.prepare({.from = source,
                       .to = one.to,
                       .window = {0, 0, one.to.width, one.to.height},
                       .interpolation = one.interpolation,
                       .mirrored = one.mirrored});
    resampler.run(view, made.data(), row);
    XXH3_64bits_update(&state, made.data(), made.size());
  }
  made.resize(pixels.size());
  mirror_rows(pixels.data(), source, made.data());
  XXH3_64bits_update(&state, made.data(), made.size());
  return XXH3_64bits_digest(&state);
}

constinit VectorCode resample_passes{[] { return resample_checksum() == right_resample_checksum; }};

}  // namespace millrace
