// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>
#include <millrace/tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

// The header of numpy's .npy files, by numpy's own description of the format (numpy.lib.format,
// versions 1.0 to 3.0):
//
//     "\x93NUMPY"   6 bytes
//     version       major and minor, a byte each
//     length        of what follows, little-endian: 2 bytes in version 1, 4 in versions 2 and 3
//     header        a Python dictionary with "descr", "fortran_order" and "shape", then spaces and
//                   a newline; in UTF-8 in version 3, and in Latin-1 before
//     the array     in C order, or in Fortran's

namespace millrace {

/// What a .npy file says of its array.
struct NpyHeader {
  DType dtype = DType::uint8;
  /// Extents, outermost first; none for a scalar.
  std::vector<std::uint64_t> extents{};
  /// Where the array begins in the file.
  std::uint64_t data_offset = 0;
};

/// Bytes of a file that hold the header of any array that is read here, and more: a longer one is
/// refused.
inline constexpr std::size_t most_npy_header_bytes = std::size_t{1} << 16;

/// Whether a file that begins with `beginning` is a .npy file.
bool is_npy(std::span<const std::byte> beginning);

/// Reads the header of a file that begins with `beginning`: all of it, or its first
/// `most_npy_header_bytes`. Throws `Error` (`corrupt`; the message is a clause about the file that
/// says what to do) for a damaged header and for arrays that are not read: in Fortran order, with a
/// structured, an object's or another unknown dtype, or with big-endian numbers. Takes time and
/// memory in proportion to the header.
NpyHeader parse_npy_header(std::span<const std::byte> beginning);

}  // namespace millrace
