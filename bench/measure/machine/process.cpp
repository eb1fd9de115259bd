// SPDX-License-Identifier: Apache-2.0
#include "measure/machine/process.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace millrace::cli {
namespace {

constexpr std::chrono::milliseconds watch_interval{20};

/// Parses a line "Name: 123 kB" of a file under /proc. Returns bytes.
std::size_t kilobytes_line(const std::string& line) {
  std::istringstream words(line);
  std::string name;
  std::size_t kilobytes = 0;
  words >> name >> kilobytes;
  return kilobytes * 1024;
}

/// Returns the bytes of resident pages of mapped files, such as programs and libraries, except the
/// files `left_out`. Written pages of such files are excluded: they count as anonymous memory.
/// Returns nullopt if the system does not give this information.
std::optional<std::size_t> file_bytes_without(const std::vector<std::string>& left_out,
                                              const std::filesystem::path& process) {
  std::ifstream smaps(process / "smaps");
  if (!smaps) return {};
  std::size_t bytes = 0;
  std::size_t resident = 0;
  bool counts = false;
  for (std::string line; std::getline(smaps, line);) {
    const bool begins_mapping = line.find('-') < line.find(':');
    if (begins_mapping) {
      const std::size_t path = line.find('/');
      counts = path != std::string::npos &&
               std::ranges::find(left_out, line.substr(path)) == left_out.end();
    } else if (line.starts_with("Rss:")) {
      resident = kilobytes_line(line);
    } else if (line.starts_with("Anonymous:") && counts) {
      bytes += resident - std::min(resident, kilobytes_line(line));
    }
  }
  return bytes;
}

}  // namespace

ProcessorTimes processor_times() {
  ProcessorTimes times;
  timespec now{};
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0)
    times.process_seconds =
        static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
  // Columns: user, nice, system, idle, iowait, irq, softirq, steal (proc(5)).
  constexpr int idle_column = 3;
  constexpr int iowait_column = 4;
  constexpr int steal_column = 7;
  std::ifstream stat("/proc/stat");
  std::string name;
  stat >> name;
  double ticks = 0;
  for (int column = 0; column <= steal_column && stat >> ticks; ++column) {
    times.machine_ticks += ticks;
    if (column == idle_column || column == iowait_column) times.unused_ticks += ticks;
    if (column == steal_column) times.stolen_ticks = ticks;
  }
  return times;
}

double ticks_per_second() { return static_cast<double>(sysconf(_SC_CLK_TCK)); }

double steal_between(const ProcessorTimes& before, const ProcessorTimes& after) {
  const double all = after.machine_ticks - before.machine_ticks;
  return all > 0 ? (after.stolen_ticks - before.stolen_ticks) / all : 0;
}

double taken_by_others(const ProcessorTimes& before, const ProcessorTimes& after) {
  /// If the share of unused time is below this, other programs compete with the workers.
  constexpr double full_machine = 0.05;
  const double all = after.machine_ticks - before.machine_ticks;
  const double unused = after.unused_ticks - before.unused_ticks;
  if (all < ticks_per_second() || unused / all > full_machine) return 0;
  const double own = (after.process_seconds - before.process_seconds) * ticks_per_second();
  return std::max(0.0, (all - unused - own) / all);
}

std::chrono::nanoseconds thread_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

std::optional<std::size_t> own_memory(const std::filesystem::path& process) {
  std::ifstream status(process / "status");
  std::optional<std::size_t> bytes;
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:") || line.starts_with("RssShmem:"))
      bytes = bytes.value_or(0) + kilobytes_line(line);
  return bytes;
}

ResidentMemory::ResidentMemory(const std::vector<std::string>& mapped_files,
                               std::filesystem::path process)
    : process_(std::move(process)), peak_anonymous_(own_memory(process_)) {
  for (const std::string& file : mapped_files)
    mapped_files_.push_back(std::filesystem::canonical(file).string());
  thread_ = std::thread([this] { watch(); });
}

ResidentMemory::~ResidentMemory() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wakes_.notify_all();
  thread_.join();
}

void ResidentMemory::watch() {
  std::unique_lock lock(mutex_);
  while (!wakes_.wait_for(lock, watch_interval, [this] { return stopping_; }))
    peak_anonymous_ = std::max(peak_anonymous_, own_memory(process_));
}

std::optional<std::size_t> ResidentMemory::peak() const {
  const std::optional<std::size_t> now = own_memory(process_);
  const std::optional<std::size_t> files = file_bytes_without(mapped_files_, process_);
  const std::lock_guard lock(mutex_);
  if (!now || !files) return {};
  return std::max(peak_anonymous_, now).value() + *files;
}

}  // namespace millrace::cli
