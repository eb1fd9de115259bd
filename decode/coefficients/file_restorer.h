// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "coefficients/record.h"
#include "jpeg/frame.h"

namespace millrace::coefficients {

/// Makes a JPEG file from its coefficients and its skeleton, whose segments have the Huffman
/// tables, restart intervals and scans. Does not compare the file's checksum. Returns false if the
/// skeleton is corrupt or does not fit the coefficients.
bool restore_file(const jpeg::Frame& frame, const Coefficients& coefficients,
                  const FileParts& parts, std::vector<std::uint8_t>& file);

}  // namespace millrace::coefficients
