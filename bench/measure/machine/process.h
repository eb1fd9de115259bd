// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace millrace::cli {

/// Processor time so far.
struct ProcessorTimes {
  /// Time of this process, all threads.
  double process_seconds = 0;
  /// Times of the machine, in clock ticks (see `ticks_per_second`): all time, unused time, and time
  /// that the hypervisor gave to other machines.
  double machine_ticks = 0;
  double unused_ticks = 0;
  double stolen_ticks = 0;
};
ProcessorTimes processor_times();
double ticks_per_second();
/// Share of the machine's time that was stolen between two readings, 0 to 1.
double steal_between(const ProcessorTimes& before, const ProcessorTimes& after);
/// Share of the machine's time between two readings, 0 to 1, that other programs and machines took
/// while no processor was free. 0 below a second of processor time, for which ticks are too coarse.
double taken_by_others(const ProcessorTimes& before, const ProcessorTimes& after);
/// A run counts as disturbed if others took more than this share.
constexpr double disturbed_share = 0.03;

/// Processor time of the calling thread so far.
std::chrono::nanoseconds thread_time();

/// Resident memory of this process, without pages of mapped files, in bytes. Nullopt without /proc.
/// `process` is the process's folder there.
std::optional<std::size_t> own_memory(const std::filesystem::path& process = "/proc/self");

/// Monitors this process's resident memory during its lifetime.
class ResidentMemory {
 public:
  /// Excludes pages of `mapped_files`, which belong to the page cache.
  explicit ResidentMemory(const std::vector<std::string>& mapped_files,
                          std::filesystem::path process = "/proc/self");
  ~ResidentMemory();
  ResidentMemory(const ResidentMemory&) = delete;
  ResidentMemory& operator=(const ResidentMemory&) = delete;

  /// The maximum so far, in bytes; nullopt if the system does not tell.
  std::optional<std::size_t> peak() const;

 private:
  void watch();

  const std::filesystem::path process_;
  std::vector<std::string> mapped_files_;
  mutable std::mutex mutex_;
  std::condition_variable wakes_;
  bool stopping_ = false;
  std::optional<std::size_t> peak_anonymous_;
  std::thread thread_;
};

}  // namespace millrace::cli
