// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/sha.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

namespace millrace::testing {

/// The SHA-256 in hexadecimal digits.
inline std::string sha256(std::span<const std::uint8_t> bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(bytes.data(), bytes.size(), digest.data());
  std::string text;
  for (const unsigned char byte : digest) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", byte);
    text += digits.data();
  }
  return text;
}

}  // namespace millrace::testing
