// SPDX-License-Identifier: Apache-2.0
//
// The self-check of the passes' vector code. `resample_passes` runs it.
#pragma once

#include <cstdint>

namespace millrace {

/// Returns the XXH3-64 of a generated image, resized and mirrored with the instruction set that
/// Highway chooses now.
std::uint64_t resample_checksum();

/// The checksum's value with every instruction set, and with plain code.
inline constexpr std::uint64_t right_resample_checksum = 0x8a5efe00c8a5abde;

}  // namespace millrace
