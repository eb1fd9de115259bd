// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/decode_budget.h>
#include <millrace/error.h>
#include <millrace/image.h>

#include <cstddef>
#include <cstdint>

namespace millrace {

/// Bad for an image of more than `max_pixels`.
Status check_pixels(Size image, const DecodeLimits& limits);

/// Bad for an image that costs more than the limits allow: pixels beside the bytes of its file, and
/// the memory that is needed to decode all of it.
Status check_limits(Size image, std::size_t encoded_bytes, std::uint64_t needed_bytes,
                    const DecodeLimits& limits);

/// Bad for an image that takes more memory to decode than the limits allow.
Status check_memory(Size image, std::uint64_t needed_bytes, const DecodeLimits& limits);

/// Throws `Error` (`invalid_argument`) unless the region lies in an image of that size and has a
/// pixel.
void check_inside(const Region& region, Size image);

/// Throws `Error` (`invalid_argument`) unless an image can be reduced to 1/`reduction`.
void check_reduction(int reduction);

/// The size of an image at 1/`reduction` of its resolution: its sides divided, rounded up.
Size reduced_size(Size image, int reduction);

inline std::int64_t pixels_of(Size size) { return std::int64_t{size.width} * size.height; }

}  // namespace millrace
