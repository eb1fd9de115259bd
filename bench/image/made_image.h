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

/// What a recipe makes of an image: 8-bit RGB rows without gaps.
struct MadeImage {
  Size size;
  std::vector<std::uint8_t> rgb;
};

/// A sample in memory of its own, made as a pipeline's worker does.
class MadeSample {
 public:
  /// Makes one of a record. `random` is the sample's. Bad for a record that the transform refuses.
  /// Throws what it throws.
  Status make(const Transform& transform, const Record& record, Random& random);

  /// A field, valid until the next sample is made; of one that varies in length all of the longest.
  const Tensor& operator[](std::string_view field) const;
  /// The length of a field that varies.
  std::size_t length(std::string_view field) const;
  /// The field "image"; several images of a sample come below each other.
  MadeImage image() const;

 private:
  SampleSpec spec_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<Tensor> places_;
};

/// The image as a PNG file. Throws `Error` (`io`) where libpng cannot write it.
std::string png_of(const MadeImage& image);
/// The SHA-256 of the rows in hexadecimal digits.
std::string sha256_of(const MadeImage& image);

}  // namespace millrace::cli
