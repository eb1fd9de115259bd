// SPDX-License-Identifier: Apache-2.0
#include "dataset/fingerprint.h"

#include <millrace/dataset.h>
#include <millrace/detail/json_text.h>
#include <millrace/error.h>

#include <charconv>
#include <cstdio>

namespace millrace {
namespace {

// 2^64 divided by the golden ratio. It is odd, so multiplying by it loses no bits.
constexpr std::uint64_t base = 0x9e3779b97f4a7c15;

}  // namespace

std::uint64_t fingerprint_with(std::uint64_t fingerprint, std::uint64_t checksum) {
  return fingerprint * base + checksum;
}

std::uint64_t fingerprint_of_both(std::uint64_t first, std::uint64_t second,
                                  std::uint64_t second_records) {
  std::uint64_t power = 1;
  for (std::uint64_t square = base; second_records > 0; second_records /= 2, square *= square)
    if (second_records % 2 == 1) power *= square;
  return first * power + second;
}

std::string hex16(std::uint64_t number) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  return digits;
}

std::uint64_t parse_hex16(const std::string& digits) {
  std::uint64_t number = 0;
  const char* end = digits.data() + digits.size();
  if (const auto [at, error] = std::from_chars(digits.data(), end, number, 16);
      error != std::errc() || at != end)
    throw Error(ErrorCode::corrupt, "bad fingerprint " + cut(digits));
  return number;
}

}  // namespace millrace
