// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "command/image/made_image.h"

namespace millrace::cli {

using Colour = std::array<std::uint8_t, 3>;

/// Returns colour `number` of a repeating list, whose colours people with colour blindness can
/// distinguish. Source: Okabe and Ito, "Color universal design", 2008.
Colour colour_of(std::size_t number);

/// An image to draw on. Drawing is clipped to it.
class Canvas {
 public:
  Canvas(Size size, Colour background);
  explicit Canvas(MadeImage image) : image_(std::move(image)) {}

  void place(const MadeImage& image, int x, int y);
  void fill(const Region& region, Colour colour);
  /// Draws the edge of a region, inside it.
  void frame(const Region& region, int width, Colour colour);
  /// Draws a line of text with the top left corner (x, y), `text_height` high. Characters outside
  /// ASCII are drawn as "?".
  void write(const std::string& text, int x, int y, Colour colour);

  static constexpr int text_height = 18;
  static int text_width(const std::string& text);

  const MadeImage& image() const { return image_; }

 private:
  MadeImage image_;
};

/// Scales the image down so that its longer side is at most `longest`.
MadeImage shrunk(const MadeImage& image, int longest);

}  // namespace millrace::cli
