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
  /// Coherency, 0 or more: the cost of workers that keep each other informed. Above 0 throughput
  /// has a peak.
  double kappa = 0;
  /// How many of the three were fitted. One worker count allows lambda alone, two also sigma. It is
  /// 0 if there was nothing to fit; all rates are 0 then.
  int parameters = 0;
  /// The share of the rates' variance that the law explains, up to 1; 1 if they do not vary.
  double r_squared = 0;

  /// Whether it says more than the rates themselves: it is of three worker counts or more, and
  /// explains most of what they vary.
  bool holds() const { return parameters >= 3 && r_squared >= 0.8; }
  /// Of one worker or more.
  double rate(double n) const;
  /// The worker count of the highest throughput: sqrt((1 - sigma) / kappa), at least 1. It is
  /// infinite if throughput only grows.
  double peak() const;
};

/// The law with the least squares of relative errors, its terms within their bounds. Points with a
/// rate or worker count not above 0 are left out. Several points of one worker count are its runs.
UslFit fit_usl(std::span<const ScalingPoint> points);

/// The smallest worker count from 1 to `most` whose fitted rate is at least `share` of the highest
/// fitted rate in that range.
unsigned usl_knee(const UslFit& fit, unsigned most, double share);

}  // namespace millrace::cli
