// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace millrace {

/// The fingerprint of some records and `second_records` more behind them, of the fingerprints of
/// both (see `fingerprint_with`).
std::uint64_t fingerprint_of_both(std::uint64_t first, std::uint64_t second,
                                  std::uint64_t second_records);

/// A checksum or fingerprint as 16 hexadecimal digits, as files have it.
std::string hex16(std::uint64_t number);
/// Reads that. Throws `Error` (`corrupt`).
std::uint64_t parse_hex16(const std::string& digits);

}  // namespace millrace
