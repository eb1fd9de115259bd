// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/random.h>

#include <cstddef>
#include <vector>

namespace millrace {

/// `count` weights whose sum is 1, of the Dirichlet distribution whose parameters all are `alpha`.
std::vector<float> drawn_dirichlet(double alpha, std::size_t count, Random& random);

}  // namespace millrace
