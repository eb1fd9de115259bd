// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/image_decoder.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

namespace millrace::testing {

inline std::unique_ptr<ImageDecoder> decoder_for_fuzzing() {
  // Without the limit most of the time would go into large images.
  return make_image_decoder(
      std::make_shared<DecodeBudget>(DecodeLimits{.max_pixels_per_byte = 50}));
}

/// Decodes an image: its facts, its check, the whole, and a region. Aborts in three cases:
/// - A decoder that has had all of the inputs before behaves differently from a new one.
/// - The whole image is bad although `check` accepts it.
/// - The region is bad, or its pixels differ from those of the whole.
inline void expect_sound_codec(std::span<const std::byte> encoded) {
  ImageInfo info;
  (void)read_image_info(encoded, info).is_ok();
  static const auto used = decoder_for_fuzzing();
  const auto fresh = decoder_for_fuzzing();
  const Status opened = used->open(encoded);
  if (opened.reason() != fresh->open(encoded).reason()) std::abort();
  if (!opened.is_ok()) return;
  const Status checked = used->check();
  if (checked.reason() != fresh->check().reason()) std::abort();

  const Size size = used->header().size();
  PixelView whole;
  PixelView part;
  if (!fresh->open(encoded).is_ok() || !used->open(encoded).is_ok()) std::abort();
  const bool decoded = fresh->decode({0, 0, size.width, size.height}, whole).is_ok();
  if (checked.is_ok() && !decoded) std::abort();
  const auto some = static_cast<int>(encoded.size());
  const int x = some % size.width;
  const int y = some * 7 % size.height;
  const Region region{x, y, 1 + some * 3 % (size.width - x), 1 + some * 5 % (size.height - y)};
  if (!used->decode(region, part).is_ok()) {
    if (decoded) std::abort();
    return;
  }
  for (int row = 0; decoded && row < region.height; ++row) {
    const std::uint8_t* of_part = part.pixels + static_cast<std::size_t>(row) * part.stride;
    const std::uint8_t* of_whole = whole.pixels + static_cast<std::size_t>(y + row) * whole.stride +
                                   3 * static_cast<std::size_t>(x);
    if (!std::equal(of_part, of_part + 3 * region.width, of_whole)) std::abort();
  }
  if (!used->open(encoded).is_ok()) std::abort();
  (void)used->decode_reduced({0, 0, 1, 1}, 8, part).is_ok();
}

}  // namespace millrace::testing
