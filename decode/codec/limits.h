// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/decode_budget.h>
#include <millrace/error.h>
#include <millrace/image.h>

#include <cstddef>
#include <cstdint>

namespace millrace {

/// Returns a bad status for an image of more than `max_pixels`.
Status check_pixels(Size image, const DecodeLimits& limits);

/// Returns a bad status for an image beyond the limits: too many pixels for the bytes of its file,
/// or too much memory to decode all of it.
Status check_limits(Size image, std::size_t encoded_bytes, std::uint64_t needed_bytes,
                    const DecodeLimits& limits);

/// Returns a bad status for an image that takes more memory to decode than the limits allow.
Status check_memory(Size image, std::uint64_t needed_bytes, const DecodeLimits& limits);

/// Throws `Error` (`invalid_argument`) unless the region lies in an image of that size and is not
/// empty.
void check_inside(const Region& region, Size image);

/// Throws `Error` (`invalid_argument`) unless `reduction` is 2, 4 or 8.
void check_reduction(int reduction);

/// Returns the size of an image at 1/`reduction` of its resolution. The sides are rounded up.
Size reduced_size(Size image, int reduction);

inline std::int64_t pixels_of(Size size) { return std::int64_t{size.width} * size.height; }

}  // namespace millrace
