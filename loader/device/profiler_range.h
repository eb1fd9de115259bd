// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/device.h>

#include <cstdint>

namespace millrace {

/// Scope that reports to `profiler` that the calling thread does `name` for batch `batch`. Null =
/// no report.
class ProfilerRange {
 public:
  ProfilerRange(ProfilerRanges* profiler, const char* name, std::uint64_t batch) noexcept
      : profiler_(profiler) {
    if (profiler_ != nullptr) profiler_->begin(name, batch);
  }
  ~ProfilerRange() {
    if (profiler_ != nullptr) profiler_->end();
  }
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;

 private:
  ProfilerRanges* profiler_;
};

}  // namespace millrace
