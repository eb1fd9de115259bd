// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/recipe.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace millrace::cli {

/// The values that a recipe option takes, for help: the names of all presets, or a JSON file.
std::string recipe_names();

/// Adds an option for a recipe: the name of a preset, or a JSON file.
CLI::Option* add_recipe(CLI::App& command, const char* name, std::string& recipe,
                        const std::string& text);

/// Adds --size, the output size of a preset.
void add_size(CLI::App& command, std::optional<int>& size);

/// Loads a recipe by name. `size` is the output side of a preset, nullopt = the preset's own.
/// Throws `Error` with the file, and with the key and value that are wrong; `invalid_argument` for
/// a size beside a file.
Recipe load_recipe(const std::string& name, std::optional<int> size = std::nullopt);
/// Does the same for images that the command itself makes, so that no device decodes them.
Recipe load_recipe_for_host(const std::string& name, std::optional<int> size = std::nullopt);

}  // namespace millrace::cli
