// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace millrace {

/// Returns the orientation, 1 to 8, that an image's metadata state. Follows Pillow 13. `exif` is an
/// EXIF block, which is a TIFF structure (Exif 2.32, 4.6.4: tag 0x0112 of the first directory, a
/// SHORT). Other integers of two or four bytes are accepted. Each prefix "Exif" with two zeros is
/// skipped: some writers put it twice, or into formats whose EXIF blocks have no prefix. `xmp` is
/// an XMP packet. Its tiff:Orientation counts if EXIF has no such tag. Both may be empty. Returns
/// nullopt if neither states an orientation.
std::optional<int> stated_orientation(std::span<const std::byte> exif,
                                      std::span<const std::byte> xmp);

}  // namespace millrace
