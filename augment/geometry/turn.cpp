// SPDX-License-Identifier: Apache-2.0
#include <millrace/geometry.h>

#include <utility>

namespace millrace {

Turn turn_of(int orientation) {
  switch (orientation) {
    case 2:
      return {.mirrored = true};
    case 3:
      return {.mirrored = true, .flipped = true};
    case 4:
      return {.flipped = true};
    case 5:
      return {.transposed = true};
    case 6:
      return {.transposed = true, .mirrored = true};
    case 7:
      return {.transposed = true, .mirrored = true, .flipped = true};
    case 8:
      return {.transposed = true, .flipped = true};
    default:
      return {};
  }
}

Size turned(Size image, Turn turn) {
  if (turn.transposed) std::swap(image.width, image.height);
  return image;
}

Region stored_region(const Region& region, Size upright, Turn turn) {
  Region stored = region;
  if (turn.mirrored) stored.x = upright.width - region.x - region.width;
  if (turn.flipped) stored.y = upright.height - region.y - region.height;
  if (turn.transposed) {
    std::swap(stored.x, stored.y);
    std::swap(stored.width, stored.height);
  }
  return stored;
}

}  // namespace millrace
