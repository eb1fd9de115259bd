// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "image/made_image.h"

namespace millrace::cli {

using Colour = std::array<std::uint8_t, 3>;

/// Colours that stay apart for those who tell red from green badly, again and again. Source: Okabe
/// and Ito, "Color universal design", 2008.
Colour colour_of(std::size_t number);

/// An image that is drawn on. What does not lie on it is left out.
class Canvas {
 public:
  Canvas(Size size, Colour background);
  explicit Canvas(MadeImage image) : image_(std::move(image)) {}

  void place(const MadeImage& image, int x, int y);
  void fill(const Region& region, Colour colour);
  /// The edge of a region, inside of it.
  void frame(const Region& region, int width, Colour colour);
  /// A line of text whose top left corner is (x, y), `text_height` high. It has ASCII's characters;
  /// a "?" stands for all others.
  void write(const std::string& text, int x, int y, Colour colour);

  static constexpr int text_height = 18;
  static int text_width(const std::string& text);

  const MadeImage& image() const { return image_; }

 private:
  MadeImage image_;
};

/// The image with its longer side at most that long.
MadeImage shrunk(const MadeImage& image, int longest);

}  // namespace millrace::cli
