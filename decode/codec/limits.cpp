// SPDX-License-Identifier: Apache-2.0
#include "codec/limits.h"

#include <string>

namespace millrace {
namespace {

std::string text_of(Size size) {
  return std::to_string(size.width) + " x " + std::to_string(size.height);
}

}  // namespace

Status check_pixels(Size image, const DecodeLimits& limits) {
  if (static_cast<std::uint64_t>(pixels_of(image)) <= limits.max_pixels) return Status::ok();
  return Status::bad(text_of(image) + " pixels; at most " + std::to_string(limits.max_pixels) +
                     " are decoded (max_pixels)");
}

Status check_limits(Size image, std::size_t encoded_bytes, std::uint64_t needed_bytes,
                    const DecodeLimits& limits) {
  const auto pixels = static_cast<std::uint64_t>(pixels_of(image));
  if ((pixels - 1) / encoded_bytes >= limits.max_pixels_per_byte)
    return Status::bad(text_of(image) + " pixels in " + std::to_string(encoded_bytes) +
                       " bytes; at most " + std::to_string(limits.max_pixels_per_byte) +
                       " pixels per byte are decoded (max_pixels_per_byte)");
  return check_memory(image, needed_bytes, limits);
}

Status check_memory(Size image, std::uint64_t needed_bytes, const DecodeLimits& limits) {
  if (needed_bytes > DecodeBudget::small_bytes && needed_bytes > limits.max_decode_bytes)
    return Status::bad(text_of(image) + " pixels take " + std::to_string(needed_bytes) +
                       " bytes of memory to decode; at most " +
                       std::to_string(limits.max_decode_bytes) + " are taken (max_decode_bytes)");
  return Status::ok();
}

void check_inside(const Region& region, Size image) {
  if (region.x < 0 || region.y < 0 || region.width < 1 || region.height < 1 ||
      region.x > image.width - region.width || region.y > image.height - region.height)
    throw Error(ErrorCode::invalid_argument, "region " + text_of({region.width, region.height}) +
                                                 " at (" + std::to_string(region.x) + ", " +
                                                 std::to_string(region.y) +
                                                 ") is not inside an image of " + text_of(image));
}

void check_reduction(int reduction) {
  if (reduction != 2 && reduction != 4 && reduction != 8)
    throw Error(ErrorCode::invalid_argument,
                "an image is reduced to 1/2, 1/4 or 1/8, not 1/" + std::to_string(reduction));
}

Size reduced_size(Size image, int reduction) {
  const auto reduced = [&](int side) { return (side + reduction - 1) / reduction; };
  return {reduced(image.width), reduced(image.height)};
}

}  // namespace millrace
