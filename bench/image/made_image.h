// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/image.h>
#include <millrace/transform.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace millrace::cli {

/// What a recipe makes of an image: 8-bit RGB rows without gaps.
struct MadeImage {
  Size size;
  std::vector<std::uint8_t> rgb;
};

/// Makes a sample of an encoded image as a pipeline's worker does. `random` is the sample's. Bad
/// for an image that the transform refuses. Throws what it throws.
Status make_image(const Transform& transform, std::span<const std::byte> encoded, Random& random,
                  MadeImage& made);

/// The image as a PNG file. Throws `Error` (`io`) where libpng cannot write it.
std::string png_of(const MadeImage& image);
/// The SHA-256 of the rows in hexadecimal digits.
std::string sha256_of(const MadeImage& image);

}  // namespace millrace::cli
