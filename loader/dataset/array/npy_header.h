// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>
#include <millrace/tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

// The header of numpy's .npy files. Source: numpy.lib.format, versions 1.0 to 3.0:
//
//     "\x93NUMPY"   6 bytes.
//     version       Major and minor version, a byte each.
//     length        Length of the header, little-endian: 2 bytes in version 1, 4 in 2 and 3.
//     header        A Python dictionary with "descr", "fortran_order" and "shape", then spaces and
//                   a newline. In Latin-1; in version 3 in UTF-8.
//     array         The values, in C order or in Fortran order.

namespace millrace {

/// The parsed header of a .npy file.
struct NpyHeader {
  DType dtype = DType::uint8;
  /// Extents, outermost first; empty for a scalar.
  std::vector<std::uint64_t> extents{};
  /// Offset of the array's first byte in the file.
  std::uint64_t data_offset = 0;
};

/// Maximal length of an accepted header, so this many first bytes of a file contain it. A longer
/// header is refused.
inline constexpr std::size_t max_npy_header_bytes = std::size_t{1} << 16;

/// Returns whether a file that begins with `beginning` is a .npy file.
bool is_npy(std::span<const std::byte> beginning);

/// Parses a header. `beginning` is the whole file or its first `max_npy_header_bytes`. Throws
/// `Error` (`corrupt`) for a damaged header and for an unsupported array: in Fortran order, of
/// big-endian numbers, or of a structured, object or unknown dtype. The message is a clause about
/// the file and says what to do. Time and memory are linear in the header's length.
NpyHeader parse_npy_header(std::span<const std::byte> beginning);

}  // namespace millrace
