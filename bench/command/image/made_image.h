// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/image.h>
#include <millrace/transform.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::cli {

/// Maximum side of a recipe's output.
inline constexpr int longest_made_side = 16384;

/// An image that a recipe made: 8-bit RGB rows without gaps.
struct MadeImage {
  Size size;
  std::vector<std::uint8_t> rgb;
};

/// A sample in its own memory, made as a pipeline's worker does.
class MadeSample {
 public:
  /// Makes a sample from a record. `random` is the sample's generator. Returns a bad status if the
  /// transform rejects the record. Rethrows the exceptions of the transform.
  Status make(const Transform& transform, const Record& record, Random& random);

  /// Returns a field, valid until the next sample is made. A field of variable length has its
  /// maximal length here.
  const Tensor& operator[](std::string_view field) const;
  /// Length of a variable field.
  std::size_t length(std::string_view field) const;
  /// The field "image"; several images of a sample are stacked vertically.
  MadeImage image() const;

 private:
  SampleSpec spec_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<Tensor> places_;
};

/// Encodes the image as PNG. Throws `Error` (`io`) if libpng fails.
std::string png_of(const MadeImage& image);
/// SHA-256 of the rows, in hexadecimal digits.
std::string sha256_of(const MadeImage& image);

}  // namespace millrace::cli
