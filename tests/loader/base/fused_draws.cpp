// SPDX-License-Identifier: Apache-2.0
#include "loader/base/fused_draws.h"

namespace millrace::testing {

void draw_fused(Random& random, double low, double high, double* draws, std::size_t count) {
  for (std::size_t n = 0; n < count; ++n) draws[n] = random.uniform(low, high);
}

}  // namespace millrace::testing
