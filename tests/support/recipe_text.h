// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <millrace/error.h>
#include <millrace/recipe.h>

#include <string>
#include <vector>

namespace millrace::testing {

/// Returns the message of the error for a recipe's text.
inline std::string why_not(const std::string& json) {
  try {
    (void)Recipe::from_json(json, "train.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "accepted";
}

/// Does the same for a list of operations.
inline std::string why_no_list(const std::string& ops) {
  return why_not(R"({"ops": )" + ops + "}");
}

/// Parses the operations of a recipe's text.
inline std::vector<Operation> operations_of(const std::string& ops) {
  return Recipe::from_json(R"({"ops": )" + ops + "}").ops;
}

}  // namespace millrace::testing
