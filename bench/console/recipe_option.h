// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/recipe.h>

#include <CLI/CLI.hpp>
#include <string>

namespace millrace::cli {

inline constexpr const char* recipe_names =
    "train (random resized crop, flip), eval (resize, centre crop) or a JSON file";

/// For the name of a recipe: "train", "eval" or a JSON file.
CLI::Option* add_recipe(CLI::App& command, const char* name, std::string& recipe, const char* text);

/// The recipe of that name; `size` is the output's side of "train" and "eval". Throws `Error`
/// naming the file, and the key and value where these are wrong.
Recipe load_recipe(const std::string& name, int size = 224);

}  // namespace millrace::cli
