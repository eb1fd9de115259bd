// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>

#include <functional>
#include <string>

#include "pipeline/blocking_call_scope.h"

namespace millrace::testing {

/// Returns the first blocking call that `function` makes; empty if it makes none.
inline std::string blocking_call_of(const std::function<void()>& function) {
  const BlockingCallScope scope(true);
  function();
  try {
    scope.check("test");
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace millrace::testing
