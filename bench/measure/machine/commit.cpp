// SPDX-License-Identifier: Apache-2.0
#include "measure/machine/commit.h"

namespace millrace::cli {

const char* commit() { return MILLRACE_COMMIT; }

}  // namespace millrace::cli
