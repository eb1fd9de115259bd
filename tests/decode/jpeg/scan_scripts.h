// SPDX-License-Identifier: Apache-2.0
//
// Scripts of scans for progressive JPEGs.
#pragma once

#include <millrace/random.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "support/jpeg_samples.h"

namespace millrace::testing {

using Script = std::vector<Scan>;

inline std::vector<int> all_components(int count) {
  std::vector<int> all;
  for (int component = 0; component < count; ++component) all.push_back(component);
  return all;
}

/// Bands of each component, without refinements.
inline Script spectral_selection(int components) {
  Script script = {{all_components(components)}};
  for (const auto& [first, last] : {std::pair(1, 2), {3, 9}, {10, 10}, {11, 63}})
    for (int component = components - 1; component >= 0; --component)
      script.push_back({{component}, first, last});
  return script;
}

/// All coefficients of each component bit by bit, from `bit` on.
inline Script successive_approximation(int components, int bit) {
  Script script = {{all_components(components), 0, 0, 0, bit}};
  for (int component = 0; component < components; ++component)
    script.push_back({{component}, 1, 63, 0, bit});
  for (; bit > 0; --bit) {
    script.push_back({all_components(components), 0, 0, bit, bit - 1});
    for (int component = components - 1; component >= 0; --component)
      script.push_back({{component}, 1, 63, bit, bit - 1});
  }
  return script;
}

/// The fewest scans.
inline Script four_scans(int components) {
  Script script = {{all_components(components)}};
  for (int component = 0; component < components; ++component)
    script.push_back({{component}, 1, 63});
  return script;
}

/// Any legal script that is complete: bands and bits in any order.
inline Script any_script(int components, Random& random) {
  constexpr int unknown = -1;
  const auto below = [&](int bound) {
    return static_cast<int>(random() % static_cast<unsigned>(bound));
  };
  std::vector<std::vector<int>> bits(static_cast<std::size_t>(components),
                                     std::vector<int>(64, unknown));
  Script script;
  if (below(2) == 0) {
    script.push_back({all_components(components), 0, 0, 0, below(5)});
    for (auto& of : bits) of[0] = script.front().low;
  } else {
    for (int component = components - 1; component >= 0; --component) {
      script.push_back({{component}, 0, 0, 0, below(5)});
      bits[static_cast<std::size_t>(component)][0] = script.back().low;
    }
  }
  for (;;) {
    // Bands whose coefficients have the same lowest bit.
    std::vector<Scan> choices;
    for (int component = 0; component < components; ++component) {
      const auto& of = bits[static_cast<std::size_t>(component)];
      for (int first = 0; first < 64;) {
        const int bit = of[static_cast<std::size_t>(first)];
        int last = first;
        while (first > 0 && last < 63 && of[static_cast<std::size_t>(last + 1)] == bit) ++last;
        if (bit != 0) choices.push_back({{component}, first, last, bit});
        first = last + 1;
      }
    }
    if (choices.empty()) return script;
    Scan scan = choices[random() % choices.size()];
    // Short scripts: libjpeg-turbo limits their length to 100 scans or so.
    if (scan.first > 0 && script.size() < 20 && below(2) == 0) {
      scan.first += below(scan.last - scan.first + 1);
      scan.last -= below(scan.last - scan.first + 1);
    }
    const bool is_first = scan.high == unknown;
    scan.low = is_first ? script.size() < 20 ? below(5) : 0 : scan.high - 1;
    if (scan.first == 0)
      for (int other = 0; other < components; ++other)
        if (other != scan.components.front() && below(2) == 0 &&
            bits[static_cast<std::size_t>(other)][0] == scan.high)
          scan.components.push_back(other);
    std::ranges::sort(scan.components);
    for (const int component : scan.components)
      std::fill_n(bits[static_cast<std::size_t>(component)].begin() + scan.first,
                  scan.last - scan.first + 1, scan.low);
    if (is_first) scan.high = 0;
    script.push_back(scan);
  }
}

/// Six kinds of scripts.
inline constexpr int script_kinds = 6;
inline Script script_of_kind(int kind, int components, Random& random) {
  switch (kind) {
    case 0:
      return {};
    case 1:
      return spectral_selection(components);
    case 2:
      return successive_approximation(components, 1);
    case 3:
      return four_scans(components);
    case 4:
      return successive_approximation(components, 4);
    default:
      return any_script(components, random);
  }
}

}  // namespace millrace::testing
