// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hwy/highway.h>

#include <cstdint>
#include <string>
#include <vector>

namespace millrace::testing {

/// Selects one instruction set for the library's vector code during its lifetime.
class OnTarget {
 public:
  explicit OnTarget(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  ~OnTarget() {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  OnTarget(const OnTarget&) = delete;
  OnTarget& operator=(const OnTarget&) = delete;
};

/// Returns every instruction set that this processor has and code is compiled for, including the
/// plain one. The set of `vnni_passes.h` includes the next smaller one, for the passes without code
/// of their own.
inline std::vector<std::int64_t> vector_targets() {
  std::vector<std::int64_t> targets;
  // The sources disable instruction sets whose vector size is unknown at compile time.
  constexpr std::int64_t disabled = HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV;
  const std::int64_t all = hwy::SupportedTargets() & HWY_TARGETS & ~disabled;
  for (int bit = 0; bit < 63; ++bit)
    if ((all >> bit & 1) != 0) targets.push_back(std::int64_t{1} << bit);
  if ((hwy::SupportedTargets() & HWY_AVX3_DL) != 0) targets.push_back(HWY_AVX3_DL | HWY_AVX3);
  return targets;
}

inline std::string name_of(std::int64_t target) { return hwy::TargetName(target & -target); }

}  // namespace millrace::testing
