// SPDX-License-Identifier: Apache-2.0
//
// The self-check of the JPEG stages' vector code. `jpeg::stages` runs it.
#pragma once

#include <cstdint>

namespace millrace::jpeg {

/// Returns the XXH3-64 of the stages' results for a built-in JPEG and for generated rows, blocks
/// and coefficients. The stages run with the instruction set that Highway chooses now.
std::uint64_t stages_checksum();

/// The checksum's value with every instruction set, and with plain code.
inline constexpr std::uint64_t right_stages_checksum = 0x6751d93e76472dd0;

}  // namespace millrace::jpeg
