// SPDX-License-Identifier: Apache-2.0
#include "ops/policy/dirichlet.h"

#include <cmath>
#include <numbers>
#include <numeric>

namespace millrace {
namespace {

/// Draws a standard normal number with the Box-Muller transform.
double drawn_normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.uniform());
}

/// Draws a gamma distributed number. Source: Marsaglia and Tsang, "A Simple Method for Generating
/// Gamma Variables", 2000.
double drawn_gamma(double alpha, Random& random) {
  if (alpha < 1) return drawn_gamma(alpha + 1, random) * std::pow(1 - random.uniform(), 1 / alpha);
  const double d = alpha - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = drawn_normal(random);
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(1 - random.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

}  // namespace

std::vector<float> drawn_dirichlet(double alpha, std::size_t count, Random& random) {
  std::vector<double> gammas(count);
  for (double& gamma : gammas) gamma = drawn_gamma(alpha, random);
  const double sum = std::accumulate(gammas.begin(), gammas.end(), 0.0);
  std::vector<float> weights(count);
  // With a very small alpha all numbers may underflow to 0. Then one of them gets all the weight.
  if (sum <= 0) {
    weights[random.below(count)] = 1;
    return weights;
  }
  for (std::size_t n = 0; n < count; ++n) weights[n] = static_cast<float>(gammas[n] / sum);
  return weights;
}

}  // namespace millrace
