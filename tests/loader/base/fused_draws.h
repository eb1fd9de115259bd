// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/random.h>

#include <cstddef>

namespace millrace::testing {

/// Draws `count` numbers by `Random::uniform(low, high)`. Compiled for a processor that fuses
/// multiplications and additions, by a compiler that uses this (Haswell on x86).
void draw_fused(Random& random, double low, double high, double* draws, std::size_t count);

}  // namespace millrace::testing
