// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace millrace::cli {

/// A measured throughput: `rate` per second with `n` workers.
struct ScalingPoint {
  double n = 0;
  double rate = 0;
};

/// The universal scalability law X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)).
/// Source: N. J. Gunther, Guerrilla Capacity Planning, Springer 2007, chapters 4 to 6.
struct UslFit {
  /// The rate of one worker.
  double lambda = 0;
  /// Contention, 0 to 1: the share of the work that is serial.
  double sigma = 0;
  /// Coherency, 0 or more: the cost of keeping workers consistent. Above 0 throughput has a peak.
  double kappa = 0;
  /// Number of the three parameters that were fitted. One worker count gives only lambda, two also
  /// sigma. 0 = there were no points to fit; all rates are then 0.
  int parameters = 0;
  /// Share of the rates' variance that the law explains, up to 1; 1 if the rates do not vary.
  double r_squared = 0;

  /// Whether the fit is meaningful: the law is fitted to three or more worker counts, and explains
  /// most of the rates' variance.
  bool holds() const { return parameters >= 3 && r_squared >= 0.8; }
  /// The fitted rate; `n` is at least 1.
  double rate(double n) const;
  /// Worker count of the highest throughput: sqrt((1 - sigma) / kappa), at least 1. Infinite if
  /// throughput only grows.
  double peak() const;
};

/// Fits the law by least squares of relative errors, with its terms within bounds. Points with a
/// rate or worker count not above 0 are left out. Several points with one worker count are its
/// runs.
UslFit fit_usl(std::span<const ScalingPoint> points);

/// The smallest worker count from 1 to `most` whose fitted rate is at least `share` of the highest
/// fitted rate in that range.
unsigned usl_knee(const UslFit& fit, unsigned most, double share);

}  // namespace millrace::cli
