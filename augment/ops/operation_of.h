// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/operation_list.h>

#include <memory>
#include <string_view>

#include "ops/image_operation.h"

namespace millrace {

/// Name in JSON of the operation whose parameters are `Values`.
template <typename Values>
struct OperationName;

#define MILLRACE_OPERATION_NAME(Values, source)                                             \
  template <>                                                                               \
  struct OperationName<Values> {                                                            \
    static constexpr const char* text = &(source)[std::string_view(source).rfind('/') + 1]; \
  };
MILLRACE_OPERATIONS(MILLRACE_OPERATION_NAME)
#undef MILLRACE_OPERATION_NAME

/// Base of an operation's class: holds its parameters, a struct of a public header. `Kind` is
/// `GeometricOperation` or `PixelOperation`.
template <typename Values, typename Kind>
class OperationOf : public Kind {
 public:
  explicit OperationOf(const Values& parameters) : parameters_(parameters) {}
  const char* name() const final { return OperationName<Values>::text; }

 protected:
  Values parameters_;
};

}  // namespace millrace
