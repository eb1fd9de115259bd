// SPDX-License-Identifier: Apache-2.0
#include "tune/usl_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <vector>

namespace millrace::cli {
namespace {

constexpr std::size_t terms = 3;
using Vector = std::array<double, terms>;
using Matrix = std::array<Vector, terms>;

/// What multiplies 1/lambda, sigma/lambda and kappa/lambda in N / X(N).
Vector basis(double n) { return {1, n - 1, n * (n - 1)}; }

/// Solves the normal equations for the terms whose bits are set in `used`; the others are 0.
/// Returns nullopt if the terms cannot be told apart.
std::optional<Vector> solve(Matrix a, Vector b, unsigned used) {
  for (std::size_t term = 0; term < terms; ++term) {
    if ((used >> term & 1U) != 0) continue;
    for (std::size_t other = 0; other < terms; ++other) a[term][other] = a[other][term] = 0;
    a[term][term] = 1;
    b[term] = 0;
  }
  const Matrix before = a;
  for (std::size_t pivot = 0; pivot < terms; ++pivot) {
    if (a[pivot][pivot] <= 1e-12 * before[pivot][pivot]) return std::nullopt;
    for (std::size_t row = pivot + 1; row < terms; ++row) {
      const double factor = a[row][pivot] / a[pivot][pivot];
      for (std::size_t column = pivot; column < terms; ++column)
        a[row][column] -= factor * a[pivot][column];
      b[row] -= factor * b[pivot];
    }
  }
  for (std::size_t row = terms; row-- > 0;) {
    for (std::size_t column = row + 1; column < terms; ++column)
      b[row] -= a[row][column] * b[column];
    b[row] /= a[row][row];
  }
  return b;
}

double squared_error(std::span<const ScalingPoint> points, const Vector& solution) {
  double error = 0;
  for (const ScalingPoint& point : points) {
    const Vector row = basis(point.n);
    double fitted = 0;
    for (std::size_t term = 0; term < terms; ++term) fitted += row[term] * solution[term];
    error += std::pow(fitted * point.rate / point.n - 1, 2);
  }
  return error;
}

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
  // The normal equations for N / X(N), each error relative to its value.
  Matrix matrix{};
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

  // With so few terms every choice of those that are held at 0 can be tried: the best one that
  // keeps the bounds is the solution.
  constexpr std::array choices = {0b001U, 0b011U, 0b101U, 0b111U};
  const std::size_t allowed = counts.size() < terms ? counts.size() : choices.size();
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t choice = 0; choice < allowed; ++choice) {
    const std::optional<Vector> solution = solve(matrix, right, choices[choice]);
    if (!solution || (*solution)[0] <= 0 || (*solution)[1] < 0 || (*solution)[2] < 0) continue;
    const double error = squared_error(used, *solution);
    if (error >= least) continue;
    least = error;
    fit.lambda = 1 / (*solution)[0];
    fit.sigma = (*solution)[1] * fit.lambda;
    fit.kappa = (*solution)[2] * fit.lambda;
  }
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
