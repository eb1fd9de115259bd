// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/colour_operations.h>
#include <millrace/policies.h>
#include <millrace/warp_operations.h>

#include "ops/operation_of.h"

namespace millrace {

/// An operation that JSON can name.
struct OperationRow {
  const char* name;
  /// Makes the operation with its default parameters.
  Operation (*make)();
};

/// Makes an operation with the default parameters of `Values`.
template <typename Values>
Operation default_operation() {
  return Operation(Values{});
}

#define MILLRACE_OPERATION_ROW(Values, source) \
  {OperationName<Values>::text, default_operation<Values>},
inline constexpr OperationRow operations[] = {MILLRACE_OPERATIONS(MILLRACE_OPERATION_ROW)};
#undef MILLRACE_OPERATION_ROW

}  // namespace millrace
