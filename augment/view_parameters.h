// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/recipe.h>

#include <span>
#include <string_view>
#include <vector>

#include "parameter_visitors.h"

namespace millrace {

/// Reads the member "ops" of a recipe or a view. A crop's "size" gives the output, unless the JSON
/// has it already. Throws `Error` (`invalid_argument`), as do the functions below.
void read_operations(ParameterReader& reader, bool has_output, Size& output,
                     std::vector<Operation>& ops, std::string_view source);
RecipeJson operations_json(std::span<const Operation> ops);

/// Checks the output and the operations of a recipe or a view.
void check_program(Size output, const std::vector<Operation>& ops, std::string_view source);

std::vector<View> read_views(const RecipeJson& json, std::string_view source);
RecipeJson views_json(const std::vector<View>& views);
/// Checks the views, and that the recipe has nothing that excludes them.
void check_views(const Recipe& recipe, std::string_view source);

std::vector<RecordImage> read_record_images(const RecipeJson& json, std::string_view source);
RecipeJson record_images_json(const std::vector<RecordImage>& images);
/// Checks the further encoded images, and that the recipe has nothing that excludes them.
void check_record_images(const Recipe& recipe, std::string_view source);

}  // namespace millrace
