// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/recipe.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace millrace::cli {

/// What a recipe may be given as: the names of all presets, or a JSON file.
std::string recipe_names();

/// For the name of a recipe: a preset's, or a JSON file.
CLI::Option* add_recipe(CLI::App& command, const char* name, std::string& recipe,
                        const std::string& text);

/// --size, of presets.
void add_size(CLI::App& command, std::optional<int>& size);

/// The recipe of that name; `size` is the output's side of a preset, nullopt = its own. Throws
/// `Error` naming the file, and the key and value where these are wrong.
Recipe load_recipe(const std::string& name, std::optional<int> size = std::nullopt);

}  // namespace millrace::cli
