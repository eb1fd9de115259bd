// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace millrace::cli {

/// How often each number came: all numbers, so that what is asked of them is exact.
class Distribution {
 public:
  void add(std::uint64_t number) { ++counts_[number]; }

  bool empty() const { return counts_.empty(); }
  /// Numbers and how often they came, ascending.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> sorted() const;

 private:
  std::unordered_map<std::uint64_t, std::uint64_t> counts_;
};

/// Of a distribution that is not empty.
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

/// The numbers from `begin` up, without `end`.
struct Bin {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t count = 0;
};

/// At most ten bins with round limits over all numbers: even ones where they are close together,
/// else growing ones (1, 2, 5 ...). A hundredth at each end does not widen them but goes into one
/// bin.
std::vector<Bin> bins_of(const Distribution& distribution);
/// With these limits, ascending. Empty bins at both ends are left out.
std::vector<Bin> bins_of(const Distribution& distribution,
                         const std::vector<std::uint64_t>& limits);

/// A line of a chart.
struct Bar {
  std::string name;
  std::uint64_t count = 0;
};

/// "     10.0 kB .. 20.0 kB" for each bin; the unit's text is that of `number`.
std::vector<Bar> bars_of(const std::vector<Bin>& bins,
                         const std::function<std::string(std::uint64_t)>& number);

/// Bars in lines with a name, a count and a share of `total` each, under a title; no wider than 80
/// columns where the names are short.
std::string chart(const std::string& title, const std::vector<Bar>& bars, std::uint64_t total);

}  // namespace millrace::cli
