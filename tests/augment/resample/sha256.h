// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace millrace::testing {

/// The SHA-256 in hexadecimal digits. Source: FIPS 180-4.
inline std::string sha256(std::span<const std::uint8_t> bytes) {
  // The first 32 bits of the fractions of the square and cube roots of the first primes.
  std::array<std::uint32_t, 8> hash;
  std::array<std::uint32_t, 64> constants;
  std::size_t primes = 0;
  for (unsigned n = 2; primes < constants.size(); ++n) {
    bool prime = true;
    for (unsigned divisor = 2; divisor * divisor <= n; ++divisor) prime &= n % divisor != 0;
    if (!prime) continue;
    const auto fraction = [](long double root) {
      return static_cast<std::uint32_t>((root - std::floor(root)) * 4294967296.0L);
    };
    if (primes < hash.size()) hash[primes] = fraction(std::sqrt(static_cast<long double>(n)));
    constants[primes++] = fraction(std::cbrt(static_cast<long double>(n)));
  }

  std::vector<std::uint8_t> message(bytes.begin(), bytes.end());
  message.push_back(0x80);
  while (message.size() % 64 != 56) message.push_back(0);
  for (int shift = 56; shift >= 0; shift -= 8)
    message.push_back(static_cast<std::uint8_t>(std::uint64_t{bytes.size()} * 8 >> shift));

  for (std::size_t block = 0; block < message.size(); block += 64) {
    std::array<std::uint32_t, 64> w;
    for (std::size_t n = 0; n < 64; ++n) {
      if (n < 16) {
        const std::uint8_t* word = &message[block + 4 * n];
        w[n] = std::uint32_t{word[0]} << 24 | std::uint32_t{word[1]} << 16 |
               std::uint32_t{word[2]} << 8 | word[3];
      } else {
        const std::uint32_t a = w[n - 15];
        const std::uint32_t b = w[n - 2];
        w[n] = w[n - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + w[n - 7] +
               (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
      }
    }
    auto [a, b, c, d, e, f, g, h] = hash;
    for (std::size_t n = 0; n < 64; ++n) {
      const std::uint32_t one = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                                ((e & f) ^ (~e & g)) + constants[n] + w[n];
      const std::uint32_t two =
          (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
    }
    const std::array<std::uint32_t, 8> step{a, b, c, d, e, f, g, h};
    for (std::size_t n = 0; n < 8; ++n) hash[n] += step[n];
  }
  std::string text;
  for (const std::uint32_t word : hash) {
    char digits[9];
    std::snprintf(digits, sizeof digits, "%08x", word);
    text += digits;
  }
  return text;
}

}  // namespace millrace::testing
