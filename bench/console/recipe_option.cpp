// SPDX-License-Identifier: Apache-2.0
#include "console/recipe_option.h"

#include <millrace/detail/json_text.h>
#include <millrace/error.h>

#include <filesystem>
#include <fstream>

#include "console/option_checks.h"

namespace millrace::cli {

CLI::Option* add_recipe(CLI::App& command, const char* name, std::string& recipe,
                        const char* text) {
  return command.add_option(name, recipe, text)->type_name("NAME|FILE.json")->check(input_check());
}

Recipe load_recipe(const std::string& name, int size) {
  if (name == "train") return Recipe::train(size);
  if (name == "eval") return Recipe::eval(size);
  const auto refuse = [&](ErrorCode code, const char* reason) {
    throw Error(code, name + ": " + reason + "; give train, eval or a JSON file");
  };
  std::error_code ignored;
  if (std::filesystem::is_directory(name, ignored)) refuse(ErrorCode::io, "is a folder");
  std::ifstream file(name);
  if (!file) refuse(ErrorCode::not_found, "no such file");
  return Recipe::from_json(read_text(file), name);
}

}  // namespace millrace::cli
