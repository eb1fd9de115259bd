// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace millrace {

/// Returns the fingerprint of two consecutive runs of records from the fingerprints of both (see
/// `fingerprint_with`). The second run has `second_records` records.
std::uint64_t fingerprint_of_both(std::uint64_t first, std::uint64_t second,
                                  std::uint64_t second_records);

/// Formats a checksum or fingerprint as 16 hexadecimal digits, the form that files store.
std::string hex16(std::uint64_t number);
/// Parses the text that `hex16` returns. Throws `Error` (`corrupt`).
std::uint64_t parse_hex16(const std::string& digits);

}  // namespace millrace
