// SPDX-License-Identifier: Apache-2.0
#include "command/console/recipe_option.h"

#include <fmt/core.h>
#include <millrace/detail/interrupted.h>
#include <millrace/detail/json_text.h>
#include <millrace/error.h>

#include <filesystem>
#include <fstream>

#include "command/console/option_checks.h"

namespace millrace::cli {

CLI::Option* add_recipe(CLI::App& command, const char* name, std::string& recipe,
                        const std::string& text) {
  return command.add_option(name, recipe, text)->type_name("NAME|FILE.json")->check(input_check());
}

void add_size(CLI::App& command, std::optional<int>& size) {
  add_number(command, "--size", size,
             "Output width and height of a preset; the default of most is 224", 1, 8192);
}

std::string recipe_names() {
  std::string names;
  for (const RecipePreset& preset : Recipe::presets()) names += std::string(preset.name) + ", ";
  return names + "or a JSON file";
}

Recipe load_recipe(const std::string& name, std::optional<int> size) {
  for (const RecipePreset& preset : Recipe::presets())
    if (name == preset.name) return Recipe::preset(name, size);
  const auto refuse = [&](ErrorCode code, const char* reason) {
    throw Error(code, name + ": " + reason + "; give " + recipe_names());
  };
  std::error_code ignored;
  if (std::filesystem::is_directory(name, ignored)) refuse(ErrorCode::io, "is a folder");
  auto file = open_stream<std::ifstream>(name, std::ios::in);
  if (!file) refuse(ErrorCode::not_found, "no such file");
  if (size)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: --size {} is for presets; \"output\" in the file is its size",
                            name, *size));
  return Recipe::from_json(read_text(file), name);
}

Recipe load_recipe_for_host(const std::string& name, std::optional<int> size) {
  Recipe recipe = load_recipe(name, size);
  recipe.decode_on = DecodeOn::worker;
  return recipe;
}

}  // namespace millrace::cli
