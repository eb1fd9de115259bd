// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/recipe.h>
#include <millrace/sample_spec.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/program.h"

namespace millrace {

/// One image of a sample: the program that makes it and its place in the sample.
struct SampleImagePlace {
  /// Index in `SampleImages::programs`.
  std::size_t program;
  Size output;
  /// The sample's field, and the image's number in it.
  std::size_t field;
  std::size_t number;
  /// Number of the image's stream of random numbers. Stream 0 is the sample's, which the recipe's
  /// images share. A view's images have streams of their own, from 1 on. Encoded images with their
  /// own draws have the next streams.
  std::uint32_t stream;
};

/// An encoded image of a record, and the images that are made of it: `count` of
/// `SampleImages::all`, from number `first` on.
struct EncodedImage {
  std::string field;
  std::size_t first;
  std::size_t count;
};

/// All images that a recipe makes of a record. Immutable; all workers share one.
struct SampleImages {
  explicit SampleImages(const Recipe& recipe);

  /// The recipe's operations.
  const Program& main() const { return programs.front(); }

  /// The recipe's operations, then those of each view.
  std::vector<Program> programs;
  SampleSpec spec;
  std::vector<SampleImagePlace> all;
  /// The field that says whether the image is packed for the device; nullopt if workers make it.
  std::optional<std::size_t> packed;
  /// The first is "image".
  std::vector<EncodedImage> encoded;
};

}  // namespace millrace
