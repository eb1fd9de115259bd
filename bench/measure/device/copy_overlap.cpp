// SPDX-License-Identifier: Apache-2.0
#include "measure/device/copy_overlap.h"

#include <algorithm>
#include <cstdint>

namespace millrace::cli {
namespace {

struct Stretch {
  std::int64_t begin;
  std::int64_t end;
};

/// Stretches of time that are in any of the spans, in order, with gaps between them.
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
