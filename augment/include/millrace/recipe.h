// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>
#include <millrace/geometry.h>

#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace MILLRACE_API millrace {

/// A random box, resized to the output size: torchvision's `RandomResizedCrop`.
struct RandomResizedCrop {
  /// Share of the image's area.
  Range scale{0.08, 1.0};
  /// Width / height.
  Range ratio{3.0 / 4.0, 4.0 / 3.0};
  friend bool operator==(const RandomResizedCrop&, const RandomResizedCrop&) = default;
};

/// The shorter side resized to `resize`, then the centred window of the output size: torchvision's
/// `Resize` and `CenterCrop`. What lies outside a smaller image is zero.
struct CenterCrop {
  int resize = 256;
  friend bool operator==(const CenterCrop&, const CenterCrop&) = default;
};

/// Where images are flipped.
enum class FlipOn {
  worker,  ///< by the worker that makes the sample
  device,  ///< by the device that converts it, which needs `PipelineOptions::conversion`; the
           ///< result has the same bits
};

/// The image program as data.
struct Recipe {
  Size output{224, 224};
  std::variant<RandomResizedCrop, CenterCrop> crop = RandomResizedCrop{};
  /// Probability of a horizontal flip.
  double flip = 0.5;
  FlipOn flip_on = FlipOn::worker;

  /// The usual training recipe: random resized crop and flip.
  static Recipe train(int size = 224);
  /// The usual evaluation recipe: shorter side to size x 256 / 224 (rounded), centred window.
  static Recipe eval(int size = 224);

  /// Reads a recipe from JSON, e.g.
  ///     {"output": [224, 224], "crop": {"kind": "random_resized", "scale": [0.08, 1], "ratio":
  ///     [0.75, 1.3333]}, "flip": 0.5}
  ///     {"output": [224, 224], "crop": {"kind": "center", "resize": 256}, "flip": 0}
  /// with output as [width, height], and "flip_on": "worker" or "device"; what is left out has the
  /// default of `Recipe`. Throws `Error` (`invalid_argument`) for malformed JSON, an unknown key or
  /// a value out of range, naming key and value; `source` names the text in the message.
  static Recipe from_json(std::string_view json, std::string_view source = "recipe");
  std::string to_json() const;

  /// Throws `Error` (`invalid_argument`) naming the first value that is out of range.
  void validate() const;

  friend bool operator==(const Recipe&, const Recipe&) = default;
};

}  // namespace millrace
