// SPDX-License-Identifier: Apache-2.0
#include "measure/tune/usl_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace millrace::cli {
namespace {

constexpr std::size_t terms = 3;
using Vector = std::array<double, terms>;

/// Returns the factors of the terms (1 - sigma)/lambda, sigma/lambda and kappa/lambda in N / X(N).
/// The terms are not negative if contention is at most 1.
Vector basis(double n) { return {1, n, n * (n - 1)}; }

double explained(std::span<const ScalingPoint> points, const UslFit& fit) {
  double mean = 0;
  for (const ScalingPoint& point : points) mean += point.rate / static_cast<double>(points.size());
  double unexplained = 0;
  double variance = 0;
  for (const ScalingPoint& point : points) {
    unexplained += std::pow(point.rate - fit.rate(point.n), 2);
    variance += std::pow(point.rate - mean, 2);
  }
  return variance > 0 ? 1 - unexplained / variance : 1;
}

}  // namespace

double UslFit::rate(double n) const {
  return lambda * n / (1 + sigma * (n - 1) + kappa * n * (n - 1));
}

double UslFit::peak() const {
  if (sigma >= 1) return 1;
  return kappa > 0 ? std::max(1.0, std::sqrt((1 - sigma) / kappa))
                   : std::numeric_limits<double>::infinity();
}

UslFit fit_usl(std::span<const ScalingPoint> points) {
  std::vector<ScalingPoint> used(points.begin(), points.end());
  std::erase_if(used, [](const ScalingPoint& point) { return point.n <= 0 || point.rate <= 0; });
  UslFit fit;
  if (used.empty()) return fit;
  // Builds the normal equations for N / X(N), with errors relative to the value.
  std::array<Vector, terms> matrix{};
  Vector right{};
  std::set<double> counts;
  for (const ScalingPoint& point : used) {
    counts.insert(point.n);
    Vector row = basis(point.n);
    for (double& term : row) term *= point.rate / point.n;
    for (std::size_t i = 0; i < terms; ++i) {
      for (std::size_t j = 0; j < terms; ++j) matrix[i][j] += row[i] * row[j];
      right[i] += row[i];
    }
  }
  fit.parameters = static_cast<int>(std::min(counts.size(), terms));

  // The error is convex, so coordinate descent with non-negative terms converges to the solution.
  Vector solution{};
  constexpr int enough_sweeps = 200'000;
  double moved = 1;
  for (int sweep = 0; sweep < enough_sweeps && moved > 1e-13; ++sweep) {
    moved = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(fit.parameters); ++i) {
      double rest = right[i];
      for (std::size_t j = 0; j < terms; ++j) rest -= i == j ? 0 : matrix[i][j] * solution[j];
      const double best = std::max(0.0, rest / matrix[i][i]);
      moved = std::max(moved, std::abs(best - solution[i]) * matrix[i][i] / right[i]);
      solution[i] = best;
    }
  }
  fit.lambda = 1 / (solution[0] + solution[1]);
  fit.sigma = solution[1] * fit.lambda;
  fit.kappa = solution[2] * fit.lambda;
  fit.r_squared = explained(used, fit);
  return fit;
}

unsigned usl_knee(const UslFit& fit, unsigned most, double share) {
  double highest = 0;
  for (unsigned n = 1; n <= most; ++n) highest = std::max(highest, fit.rate(n));
  unsigned n = 1;
  while (n < most && fit.rate(n) < share * highest) ++n;
  return n;
}

}  // namespace millrace::cli
