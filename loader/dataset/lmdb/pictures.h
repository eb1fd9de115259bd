// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// Returns the format of an encoded image by its signature, such as "JPEG"; empty for an unknown
/// one. A known format need not be one that the decoders support.
std::string_view picture_kind(std::span<const std::byte> bytes);

/// Layout of raw 8-bit pixels.
struct RawPixels {
  std::span<const std::byte> values;
  std::int64_t height = 0;
  std::int64_t width = 0;
  /// 1 = grey; 3 = blue, green, red, OpenCV's order.
  std::int64_t channels = 0;
  /// Whether channels are separate planes; otherwise the channels of a pixel are interleaved.
  bool is_planar = false;
};

/// Returns whether the pixels can be an image: one or three channels, sides of 1 to 2^20 pixels,
/// and as many bytes in `values` as the shape requires.
bool is_picture(const RawPixels& pixels);
/// Makes a binary PGM or PPM of pixels for which `is_picture` holds. A PPM has red first.
void make_pnm(const RawPixels& pixels, std::vector<std::byte>& pnm);

/// Returns the shape as text: "3 x 32 x 32".
std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace millrace
