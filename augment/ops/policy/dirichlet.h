// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/random.h>

#include <cstddef>
#include <vector>

namespace millrace {

/// Draws `count` weights with the sum 1 from the Dirichlet distribution whose parameters are all
/// `alpha`.
std::vector<float> drawn_dirichlet(double alpha, std::size_t count, Random& random);

}  // namespace millrace
