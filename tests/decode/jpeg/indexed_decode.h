// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <millrace/random.h>
#include <xxhash.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "jpeg/decoder/jpeg_decoder.h"
#include "support/jpeg_samples.h"

namespace millrace::testing {

inline Bytes copy_of(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

/// Opens an image and decodes a region of it with an index; keeps the new one.
inline Status decode_with(JpegDecoder& decoder, const Bytes& encoded, const Region& region,
                          Bytes& index, PixelView& view, IndexPoints points = IndexPoints::tiles,
                          std::optional<std::uint64_t> checksum = std::nullopt) {
  if (Status opened = decoder.open(encoded); !opened.is_ok()) return opened;
  decoder.use_index(index, checksum, points);
  Status status = decoder.decode(region, view);
  if (const auto noted = decoder.extended_index(); !noted.empty()) index = copy_of(noted);
  return status;
}

/// Does so, and compares the pixels with those of the whole image. Our own stages must decode it.
inline ::testing::AssertionResult same_with_index(
    JpegDecoder& decoder, const Bytes& encoded, const Image& reference, const Region& region,
    Bytes& index, IndexPoints points = IndexPoints::tiles,
    std::optional<std::uint64_t> checksum = std::nullopt) {
  PixelView view;
  if (const Status status = decode_with(decoder, encoded, region, index, view, points, checksum);
      !status.is_ok())
    return ::testing::AssertionFailure() << status.reason();
  const bool is_progressive = decoder.header().progressive;
  if (std::strcmp(decoder.header().decoder,
                  is_progressive ? "millrace (progressive)" : "millrace") != 0)
    return ::testing::AssertionFailure() << decoder.header().decoder;
  for (int row = 0; row < region.height; ++row)
    if (std::memcmp(view.pixels + static_cast<std::size_t>(row) * view.stride,
                    &reference.pixels[static_cast<std::size_t>(
                        ((region.y + row) * reference.width + region.x) * 3)],
                    static_cast<std::size_t>(region.width) * 3) != 0)
      return ::testing::AssertionFailure()
             << "row " << row << " of " << region.width << " x " << region.height << " at ("
             << region.x << ", " << region.y << ")";
  return ::testing::AssertionSuccess();
}

/// Changes some bytes and corrects the checksum.
inline Bytes forged(Bytes index, Random& random) {
  for (int n = 0; n < 3; ++n)
    index[random() % (index.size() - 4)] ^= static_cast<std::byte>(random());
  const std::uint64_t checksum = XXH3_64bits(index.data(), index.size() - 4);
  std::memcpy(index.data() + index.size() - 4, &checksum, 4);
  return index;
}

}  // namespace millrace::testing
