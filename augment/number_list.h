// SPDX-License-Identifier: Apache-2.0
//
// Parameters of several numbers in JSON.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ops/image_operation.h"

namespace millrace {

inline nlohmann::ordered_json json_of(const std::vector<double>& value, const NumberList& list) {
  using Json = nlohmann::ordered_json;
  Json parts = Json::array();
  for (const double number : value)
    parts.push_back(list.whole ? Json(static_cast<std::int64_t>(number)) : Json(number));
  return value.size() == 1 ? parts[0] : parts;
}

/// Returns the requirement on the list that these numbers violate, or an empty text.
inline std::string list_problem(const std::vector<double>& value, const NumberList& list) {
  for (const double number : value)
    if (!(number >= list.limits.low && number <= list.limits.high))
      return "in " + json_of({list.limits.low}, list).dump() + ".." +
             json_of({list.limits.high}, list).dump();
  for (std::size_t n = 0; list.ranges && n + 1 < value.size(); n += 2)
    if (value[n] > value[n + 1]) return "ranges, [low, high]";
  const auto is_even = [](double number) { return std::fmod(number, 2) == 0; };
  if (list.odd && std::ranges::any_of(value, is_even)) return "odd";
  if (list.weights && !value.empty() &&
      (value.size() != list.counts[0] || std::ranges::max(value) <= 0))
    return list.what;
  return {};
}

}  // namespace millrace
