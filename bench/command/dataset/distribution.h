// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace millrace::cli {

/// Counts how often each number occurs. It keeps all numbers, so that statistics are exact.
class Distribution {
 public:
  void add(std::uint64_t number) { ++counts_[number]; }

  bool empty() const { return counts_.empty(); }
  /// Numbers and their counts, ascending.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> sorted() const;

 private:
  std::unordered_map<std::uint64_t, std::uint64_t> counts_;
};

/// Statistics of a distribution that is not empty.
struct Summary {
  std::uint64_t count = 0;
  std::uint64_t min = 0;
  std::uint64_t p5 = 0;
  std::uint64_t median = 0;
  std::uint64_t p95 = 0;
  std::uint64_t max = 0;
  double mean = 0;
};
Summary summarize(const Distribution& distribution);

/// Half-open range [begin, end) of numbers.
struct Bin {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t count = 0;
};

/// Makes at most ten bins with round limits over all numbers. The bins are even if the numbers are
/// close together, else growing (1, 2, 5 ...). The lowest and highest hundredth do not widen the
/// bins: each of them is counted in one bin.
std::vector<Bin> bins_of(const Distribution& distribution);
/// Makes bins with these ascending limits. Leaves out empty bins at both ends.
std::vector<Bin> bins_of(const Distribution& distribution,
                         const std::vector<std::uint64_t>& limits);

/// A line of a chart.
struct Bar {
  std::string name;
  std::uint64_t count = 0;
};

/// Names each bin, such as " 10.0 kB .. 20.0 kB", with `number` for the texts.
std::vector<Bar> bars_of(const std::vector<Bin>& bins,
                         const std::function<std::string(std::uint64_t)>& number);

/// Draws bars under a title, a line each with name, count and share of `total`. At most 80 columns
/// wide if the names are short.
std::string chart(const std::string& title, const std::vector<Bar>& bars, std::uint64_t total);

}  // namespace millrace::cli
