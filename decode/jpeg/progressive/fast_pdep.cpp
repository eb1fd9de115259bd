// SPDX-License-Identifier: Apache-2.0
#include "jpeg/progressive/fast_pdep.h"

#ifdef __x86_64__
#include <cpuid.h>

#include <array>
#include <cstring>
#include <string_view>
#endif

namespace millrace::jpeg {

#ifdef __x86_64__

namespace {

bool detect_fast_pdep() {
  std::array<unsigned, 4> leaf{};
  auto& [eax, ebx, ecx, edx] = leaf;
  constexpr unsigned bmi2 = 1U << 8;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0 || (ebx & bmi2) == 0) return false;
  std::array<char, 12> vendor{};
  __get_cpuid(0, &eax, &ebx, &ecx, &edx);
  std::memcpy(vendor.data(), &ebx, 4);
  std::memcpy(vendor.data() + 4, &edx, 4);
  std::memcpy(vendor.data() + 8, &ecx, 4);
  const std::string_view name(vendor.data(), vendor.size());
  if (name != "AuthenticAMD" && name != "HygonGenuine") return true;
  __get_cpuid(1, &eax, &ebx, &ecx, &edx);
  const unsigned base = eax >> 8 & 15;
  const unsigned family = base == 15 ? base + (eax >> 20 & 0xFF) : base;
  constexpr unsigned zen3 = 0x19;
  return family >= zen3;
}

}  // namespace

bool has_fast_pdep() {
  static const bool fast = detect_fast_pdep();
  return fast;
}

#else

bool has_fast_pdep() { return false; }

#endif

}  // namespace millrace::jpeg
