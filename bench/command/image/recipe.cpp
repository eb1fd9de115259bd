// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <millrace/recipe.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "command/console/command.h"
#include "command/console/option_checks.h"
#include "command/console/output_file.h"
#include "command/console/recipe_option.h"

namespace millrace::cli {
namespace {

using Json = nlohmann::ordered_json;

struct RecipeArguments {
  std::string recipe;
  std::optional<int> size;
  std::string out = "-";
};

/// Formats the recipe with one operation per line.
std::string pretty(const Recipe& recipe) {
  const Json json = Json::parse(recipe.to_json());
  std::string text;
  for (const auto& [key, value] : json.items()) {
    std::string line = value.dump();
    if (key == "ops") {
      line.clear();
      for (const Json& op : value) line += (line.empty() ? "[\n    " : ",\n    ") + op.dump();
      line += "\n  ]";
    }
    text += fmt::format("{}  {}: {}", text.empty() ? "" : ",\n", Json(key).dump(), line);
  }
  return "{\n" + text + "\n}\n";
}

int run(const RecipeArguments& arguments) {
  check_outputs({arguments.out}, {arguments.recipe});
  write_text(arguments.out, pretty(load_recipe(arguments.recipe, arguments.size)));
  return 0;
}

}  // namespace

Command add_recipe_command(CLI::App& millrace) {
  auto arguments = std::make_shared<RecipeArguments>();
  CLI::App* app =
      millrace.add_subcommand("recipe", "Print a recipe as JSON to start from, or check a file");
  add_recipe(*app, "RECIPE", arguments->recipe, recipe_names())->required();
  add_size(*app, arguments->size);
  app->add_option("--out", arguments->out, "Write it to a file; - is stdout")
      ->capture_default_str()
      ->check(output_check(true));
  std::string presets = "Presets:\n";
  for (const RecipePreset& preset : Recipe::presets())
    presets += fmt::format("  {:14} {}\n", preset.name, preset.description);
  app->footer(presets + R"(
A file is printed with all values, including defaults. If it is wrong, the error names operation,
key and value. Set "classes" of "mix" to the number of classes of the dataset.

Examples:
  millrace recipe swin
  millrace recipe eval --size 160 --out eval-160.json
  millrace recipe eval-160.json)");
  return {app, [arguments] { return run(*arguments); }};
}

}  // namespace millrace::cli
