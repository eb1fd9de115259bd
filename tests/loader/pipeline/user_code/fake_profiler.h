// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <millrace/device.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace millrace::testing {

/// Records its calls.
class FakeProfiler final : public ProfilerRanges {
 public:
  struct Range {
    std::string name;
    std::uint64_t batch;
    /// Name of the enclosing range; empty for the outermost one.
    std::string outer;
  };

  void begin(const char* name, std::uint64_t batch) noexcept override {
    std::lock_guard lock(mutex_);
    auto& open = open_[std::this_thread::get_id()];
    ranges_.push_back({name, batch, open.empty() ? "" : open.back()});
    open.emplace_back(name);
  }
  void end() noexcept override {
    std::lock_guard lock(mutex_);
    auto& open = open_[std::this_thread::get_id()];
    EXPECT_FALSE(open.empty()) << "an end without a begin";
    if (!open.empty()) open.pop_back();
  }

  std::vector<Range> ranges() const {
    std::lock_guard lock(mutex_);
    return ranges_;
  }
  /// Returns how often a name came for each batch.
  std::map<std::uint64_t, std::size_t> count(const std::string& name) const {
    std::map<std::uint64_t, std::size_t> counts;
    for (const Range& range : ranges())
      if (range.name == name) ++counts[range.batch];
    return counts;
  }
  void expect_all_ended() const {
    std::lock_guard lock(mutex_);
    for (const auto& [thread, open] : open_) EXPECT_THAT(open, ::testing::IsEmpty());
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Range> ranges_;
  std::map<std::thread::id, std::vector<std::string>> open_;
};

}  // namespace millrace::testing
