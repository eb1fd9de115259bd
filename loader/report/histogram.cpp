// SPDX-License-Identifier: Apache-2.0
#include "report/histogram.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>

namespace millrace {
namespace {

/// Base-2 logarithm of the number of buckets between a value and its double.
constexpr unsigned linear_bits = 7;
constexpr std::uint64_t longest_ns = 7'200'000'000'000;

std::size_t bucket_of(std::uint64_t ns) {
  const auto width = static_cast<unsigned>(std::bit_width(ns));
  if (width <= linear_bits) return ns;
  const unsigned shift = width - linear_bits - 1;
  return (std::size_t{shift} << linear_bits) + (ns >> shift);
}

// One thread may change a number while others read it. Relaxed order suffices, since no other data
// depends on the numbers.
std::uint64_t read(const std::uint64_t& number) {
  return std::atomic_ref(const_cast<std::uint64_t&>(number)).load(std::memory_order_relaxed);
}
void write(std::uint64_t& number, std::uint64_t value) {
  std::atomic_ref(number).store(value, std::memory_order_relaxed);
}

/// Returns the middle of a bucket's range.
double middle_of(std::size_t bucket) {
  const std::size_t doubling = bucket >> linear_bits;
  if (doubling == 0) return static_cast<double>(bucket);
  const std::size_t shift = doubling - 1;
  const std::size_t mantissa = bucket - (shift << linear_bits);
  return (static_cast<double>(mantissa) + 0.5) * std::ldexp(1.0, static_cast<int>(shift));
}

}  // namespace

Histogram::Histogram() : counts_(bucket_of(longest_ns) + 1) {}

void Histogram::add(std::chrono::nanoseconds duration) {
  const std::uint64_t ns =
      std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(duration.count(), 0)), longest_ns);
  std::uint64_t& count = counts_[bucket_of(ns)];
  write(count, count + 1);
  write(count_, count_ + 1);
  write(total_ns_, total_ns_ + ns);
  write(max_ns_, std::max(max_ns_, ns));
}

void Histogram::add_to(Histogram& sum) const {
  for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
    const std::uint64_t count = read(counts_[bucket]);
    sum.counts_[bucket] += count;
    sum.count_ += count;
  }
  sum.total_ns_ += read(total_ns_);
  sum.max_ns_ = std::max(sum.max_ns_, read(max_ns_));
}

void Histogram::subtract(const Histogram& earlier) {
  std::size_t highest = 0;
  for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
    counts_[bucket] -= earlier.counts_[bucket];
    if (counts_[bucket] > 0) highest = bucket;
  }
  count_ -= earlier.count_;
  total_ns_ -= earlier.total_ns_;
  // `max_ns_` may be of a value recorded before `earlier`.
  if (count_ == 0) {
    max_ns_ = 0;
  } else if (bucket_of(max_ns_) != highest) {
    max_ns_ = static_cast<std::uint64_t>(middle_of(highest));
  }
}

double Histogram::percentile_ms(double percent) const {
  if (count_ == 0) return 0;
  const auto rank =
      static_cast<std::uint64_t>(std::ceil(percent / 100 * static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
    seen += counts_[bucket];
    if (seen >= rank && seen > 0)
      return std::min(middle_of(bucket), static_cast<double>(max_ns_)) / 1e6;
  }
  return static_cast<double>(max_ns_) / 1e6;
}

Durations Histogram::summary() const {
  return {count_,
          static_cast<double>(total_ns_) / 1e6,
          percentile_ms(50),
          percentile_ms(95),
          percentile_ms(99),
          static_cast<double>(max_ns_) / 1e6};
}

}  // namespace millrace
