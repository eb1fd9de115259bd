// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace millrace {

/// Finds the orientation, 1 to 8, in an EXIF block, which is a TIFF structure (Exif 2.32, 4.6.4:
/// tag 0x0112 of the first directory, a SHORT). Accepts other integers of two or four bytes, as
/// Pillow does. nullopt if the block states no orientation.
std::optional<int> exif_orientation(std::span<const std::byte> tiff);

/// Removes the name ("Exif" and two zeros) at the beginning of a JPEG's segment. Some writers put
/// it twice, or into other files. Each one is removed, as in Pillow since version 11.
std::span<const std::byte> without_exif_names(std::span<const std::byte> block);

}  // namespace millrace
