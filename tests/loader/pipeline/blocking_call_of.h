// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>

#include <functional>
#include <string>

#include "pipeline/batch_path.h"

namespace millrace::testing {

/// Returns the first blocking call that `function` makes; empty if it makes none.
inline std::string blocking_call_of(const std::function<void()>& function) {
  const BatchPath path(true);
  function();
  try {
    path.check("test");
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace millrace::testing
