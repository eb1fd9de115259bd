// SPDX-License-Identifier: Apache-2.0
#include "measure/device/copy_rate.h"

#include <millrace/error.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <thread>

namespace millrace::cli {
namespace {

using std::chrono::steady_clock;

/// Distance in bytes between the buffers of two copies.
std::size_t stride_of(std::size_t bytes) {
  constexpr std::size_t alignment = 4096;
  return (bytes + alignment - 1) / alignment * alignment;
}

/// A stream with source and destination memory. The copies cycle through this memory, so that
/// caches help less than with a single buffer.
class PlainCopies {
 public:
  PlainCopies(Device& device, const Memory& source, std::size_t bytes)
      : bytes_(bytes),
        source_(source),
        destination_(device.allocate_device(source.bytes())),
        begin_(device.make_timed_event()),
        end_(device.make_timed_event()),
        stream_(device.make_stream()) {
    std::memset(source_.data(), 1, source_.bytes());
  }

  std::size_t buffers() const { return source_.bytes() / stride_of(bytes_); }

  /// Returns the bytes per second of `copies` copies, one at a time, with `pause` before each. They
  /// are timed like a pipeline's copies: with events around each copy, on a stream without other
  /// work.
  std::optional<double> run(std::size_t copies, std::chrono::nanoseconds pause = {}) {
    std::chrono::duration<double> busy{0};
    for (std::size_t copy = 0; copy < copies; ++copy) {
      if (pause.count() > 0) std::this_thread::sleep_for(pause);
      const std::size_t offset = copy % buffers() * stride_of(bytes_);
      stream_->record(*begin_);
      stream_->copy(destination_.data() + offset, source_.data() + offset, bytes_);
      stream_->record(*end_);
      if (!end_->wait(std::chrono::hours(1)))
        throw Error(ErrorCode::timeout, "a copy to the device has not ended within an hour");
      const auto begin = begin_->passed_at();
      const auto end = end_->passed_at();
      if (!begin || !end || *end <= *begin) return std::nullopt;
      busy += *end - *begin;
    }
    return static_cast<double>(bytes_ * copies) / busy.count();
  }

 private:
  const std::size_t bytes_;
  const Memory& source_;
  Memory destination_;
  std::unique_ptr<Event> begin_;
  std::unique_ptr<Event> end_;
  /// Declared last, so that it is destroyed first.
  std::unique_ptr<Stream> stream_;
};

struct Stretch {
  std::int64_t begin;
  std::int64_t end;
};

/// Returns the union of the spans as disjoint intervals, in order.
std::vector<Stretch> united(const std::vector<TraceSpan>& spans) {
  std::vector<Stretch> sorted;
  for (const TraceSpan& span : spans)
    if (span.end_ns > span.begin_ns) sorted.push_back({span.begin_ns, span.end_ns});
  std::ranges::sort(sorted, {}, &Stretch::begin);
  std::vector<Stretch> stretches;
  for (const Stretch& next : sorted) {
    if (!stretches.empty() && next.begin <= stretches.back().end)
      stretches.back().end = std::max(stretches.back().end, next.end);
    else
      stretches.push_back(next);
  }
  return stretches;
}

}  // namespace

std::optional<CopyRate> copy_rate(const Report& report, std::size_t uploads) {
  const auto stage = std::ranges::find(report.stages, "copy", &StageReport::name);
  if (stage == report.stages.end() || stage->busy_seconds <= 0) return std::nullopt;
  if (report.copied_bytes == 0 || uploads == 0) return std::nullopt;
  const double bytes = static_cast<double>(report.copied_bytes) / static_cast<double>(uploads);
  return CopyRate{bytes, bytes * static_cast<double>(stage->each.count) / stage->busy_seconds};
}

std::size_t plain_copy_memory(std::size_t bytes, std::size_t buffers) {
  return stride_of(bytes) * buffers;
}

std::optional<CopyRates> plain_copy_rates(Device& device, const Memory& source, std::size_t bytes) {
  constexpr std::size_t loops = 7;
  constexpr double loop_seconds = 0.03;
  constexpr std::chrono::milliseconds enough{300};
  constexpr std::size_t max_copies = 1000;
  constexpr std::size_t paced_copies = 8;
  constexpr std::chrono::milliseconds pause{3};
  PlainCopies copies(device, source, bytes);
  const std::size_t buffers = copies.buffers();
  copies.run(buffers);  // warm-up: the first use of the memory is slower
  const auto first = copies.run(buffers);
  if (!first) return std::nullopt;
  const auto in_a_loop =
      static_cast<std::size_t>(loop_seconds * *first / static_cast<double>(bytes));
  const auto median_of_loops = [&](std::size_t count, std::chrono::nanoseconds between) {
    std::vector<double> rates;
    const steady_clock::time_point begin = steady_clock::now();
    do {
      if (const auto rate = copies.run(count, between)) rates.push_back(*rate);
    } while (rates.size() < loops && steady_clock::now() - begin < enough);
    if (rates.empty()) return 0.0;
    const auto median = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
    std::ranges::nth_element(rates, median);
    return *median;
  };
  const CopyRates rates{.at_once = median_of_loops(
                            std::clamp(in_a_loop, std::min(buffers, max_copies), max_copies), {}),
                        .paced = median_of_loops(paced_copies, pause)};
  if (rates.at_once <= 0 || rates.paced <= 0) return std::nullopt;
  return rates;
}

std::vector<TraceSpan> spans_of(const Trace& trace, std::string_view lane, std::string_view name) {
  std::vector<TraceSpan> spans;
  for (const TraceLane& one : trace.lanes())
    if (one.name == lane)
      std::ranges::copy_if(one.spans, std::back_inserter(spans),
                           [&](const TraceSpan& span) { return span.name == name; });
  return spans;
}

std::optional<double> hidden_share(const std::vector<TraceSpan>& copies,
                                   const std::vector<TraceSpan>& steps) {
  const std::vector<Stretch> busy = united(steps);
  if (busy.empty()) return std::nullopt;
  std::int64_t all = 0;
  std::int64_t hidden = 0;
  for (const TraceSpan& copy : copies) {
    const Stretch seen{std::max(copy.begin_ns, busy.front().begin),
                       std::min(copy.end_ns, busy.back().end)};
    if (seen.end <= seen.begin) continue;
    all += seen.end - seen.begin;
    auto under = std::ranges::upper_bound(busy, seen.begin, {}, &Stretch::end);
    for (; under != busy.end() && under->begin < seen.end; ++under)
      hidden += std::min(seen.end, under->end) - std::max(seen.begin, under->begin);
  }
  if (all == 0) return std::nullopt;
  return static_cast<double>(hidden) / static_cast<double>(all);
}

}  // namespace millrace::cli
