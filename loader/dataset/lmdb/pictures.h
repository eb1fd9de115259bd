// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// The format of an encoded image by its signature: "JPEG", "PNG"; empty for none that is known.
/// What a decoder takes is another question.
std::string_view picture_kind(std::span<const std::byte> bytes);

/// How raw pixels of 8 bits lie.
struct RawPixels {
  std::span<const std::byte> values;
  std::int64_t height = 0;
  std::int64_t width = 0;
  /// 1 is grey, 3 blue, green and red, in OpenCV's order.
  std::int64_t channels = 0;
  /// Whether channels lie one behind the other, and not those of a pixel together.
  bool is_planar = false;
};

/// Whether `values` has as many as there should be, of an image of one or three channels.
bool is_picture(const RawPixels& pixels);
/// Makes a binary PGM or PPM of them (`is_picture`), red first.
void make_pnm(const RawPixels& pixels, std::vector<std::byte>& pnm);

/// "3 x 32 x 32".
std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace millrace
