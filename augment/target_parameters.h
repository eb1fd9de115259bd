// SPDX-License-Identifier: Apache-2.0
//
// A recipe's targets in JSON, an object with a member for each.
#pragma once

#include <millrace/recipe.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

namespace millrace {

/// Reads targets. Throws `Error` (`invalid_argument`), as `Recipe::from_json` does.
std::vector<Target> read_targets(const nlohmann::ordered_json& json, std::string_view source);
nlohmann::ordered_json targets_json(const std::vector<Target>& targets);
/// Throws `Error` (`invalid_argument`) for the first value out of range, and for targets that the
/// recipe's operations do not support.
void check_targets(const Recipe& recipe, std::string_view source);

}  // namespace millrace
