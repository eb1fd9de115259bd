// SPDX-License-Identifier: Apache-2.0
#include "measure/tune/usl_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace millrace::cli {
namespace {

std::vector<ScalingPoint> points_of(const UslFit& law, std::initializer_list<double> counts) {
  std::vector<ScalingPoint> points;
  for (const double n : counts) points.push_back({n, law.rate(n)});
  return points;
}

TEST(UslFit, FindsTheLawBehindExactRates) {
  for (const UslFit& law : {UslFit{.lambda = 1000, .sigma = 0.05, .kappa = 0.001},
                            UslFit{.lambda = 3.5, .sigma = 0, .kappa = 0.02},
                            UslFit{.lambda = 8e5, .sigma = 0.3, .kappa = 0},
                            UslFit{.lambda = 120, .sigma = 0, .kappa = 0}}) {
    const UslFit fit = fit_usl(points_of(law, {1, 2, 4, 8, 16, 32, 64, 128}));
    EXPECT_EQ(fit.parameters, 3);
    EXPECT_NEAR(fit.lambda, law.lambda, 1e-6 * law.lambda);
    EXPECT_NEAR(fit.sigma, law.sigma, 1e-6);
    EXPECT_NEAR(fit.kappa, law.kappa, 1e-6);
    EXPECT_NEAR(fit.r_squared, 1, 1e-9);
  }
}

TEST(UslFit, KnowsThePeak) {
  EXPECT_NEAR((UslFit{.lambda = 1, .sigma = 0.19, .kappa = 0.0001}).peak(), 90, 1e-9);
  EXPECT_TRUE(std::isinf((UslFit{.lambda = 1, .sigma = 0.19}).peak()));
  EXPECT_EQ((UslFit{.lambda = 1, .sigma = 1.5, .kappa = 0.1}).peak(), 1);
}

TEST(UslFit, NoiseMovesItLittle) {
  const UslFit law{.lambda = 1000, .sigma = 0.04, .kappa = 0.0008};
  std::mt19937 random(7);
  std::normal_distribution<double> noise(1, 0.03);
  for (int repetition = 0; repetition < 20; ++repetition) {
    std::vector<ScalingPoint> points;
    for (const double n : {1., 2., 4., 8., 16., 32., 64.})
      for (int run = 0; run < 3; ++run) points.push_back({n, law.rate(n) * noise(random)});
    const UslFit fit = fit_usl(points);
    EXPECT_NEAR(fit.lambda, law.lambda, 0.06 * law.lambda);
    EXPECT_NEAR(fit.sigma, law.sigma, 0.02);
    EXPECT_NEAR(fit.peak(), law.peak(), 0.2 * law.peak());
    EXPECT_GT(fit.r_squared, 0.95);
  }
}

TEST(UslFit, NeverHasNegativeCosts) {
  // More than proportional growth, which only a negative contention would explain.
  const std::vector<ScalingPoint> superlinear = {{1, 100}, {2, 220}, {4, 460}, {8, 950}};
  const UslFit fit = fit_usl(superlinear);
  EXPECT_EQ(fit.sigma, 0);
  EXPECT_EQ(fit.kappa, 0);
  EXPECT_NEAR(fit.rate(8), 950, 100);
}

TEST(UslFit, ContentionIsAShare) {
  // Throughput that falls with every worker, which alone only a contention above 1 would explain.
  const std::vector<ScalingPoint> falling = {{1, 100}, {2, 60}, {4, 40}, {8, 20}};
  const UslFit fit = fit_usl(falling);
  EXPECT_GE(fit.sigma, 0);
  EXPECT_LE(fit.sigma, 1);
  EXPECT_GT(fit.kappa, 0);
  for (double n = 1; n <= 8; n += 0.25) {
    EXPECT_GT(fit.rate(n), 0) << n;
    EXPECT_LE(fit.rate(n), 1.01 * fit.lambda) << n;
  }
}

TEST(UslFit, HoldsForThreeCountsThatItExplains) {
  const UslFit law{.lambda = 100, .sigma = 0.1, .kappa = 0.01};
  EXPECT_TRUE(fit_usl(points_of(law, {1, 2, 4})).holds());
  EXPECT_FALSE(fit_usl(points_of(law, {1, 2})).holds());
  EXPECT_FALSE(fit_usl({}).holds());
  const std::vector<ScalingPoint> scattered = {{1, 100}, {1, 220}, {2, 90}, {2, 210},
                                               {4, 300}, {4, 120}, {8, 100}};
  EXPECT_LT(fit_usl(scattered).r_squared, 0.8);
  EXPECT_FALSE(fit_usl(scattered).holds());
}

TEST(UslFit, WithFewCountsFitsFewParameters) {
  EXPECT_EQ(fit_usl({}).parameters, 0);
  EXPECT_EQ(fit_usl({}).rate(3), 0);
  EXPECT_EQ(usl_knee(fit_usl({}), 8, 0.95), 1u);

  const std::vector<ScalingPoint> one = {{4, 390}, {4, 410}};
  const UslFit line = fit_usl(one);
  EXPECT_EQ(line.parameters, 1);
  EXPECT_NEAR(line.lambda, 100, 0.5);
  EXPECT_EQ(line.sigma, 0);
  EXPECT_EQ(line.kappa, 0);

  const std::vector<ScalingPoint> two = {{1, 100}, {2, 160}};
  const UslFit contention = fit_usl(two);
  EXPECT_EQ(contention.parameters, 2);
  EXPECT_NEAR(contention.rate(1), 100, 1e-6);
  EXPECT_NEAR(contention.rate(2), 160, 1e-6);
  EXPECT_NEAR(contention.sigma, 0.25, 1e-9);
  EXPECT_EQ(contention.kappa, 0);
}

TEST(UslFit, LeavesOutWhatIsNoRate) {
  const std::vector<ScalingPoint> points = {{1, 100}, {2, 0}, {0, 50}, {2, 200}, {3, -1}};
  const UslFit fit = fit_usl(points);
  EXPECT_EQ(fit.parameters, 2);
  EXPECT_NEAR(fit.lambda, 100, 1e-6);
  EXPECT_NEAR(fit.sigma, 0, 1e-9);
}

TEST(UslFit, TheKneeIsTheFewestWithNearlyAll) {
  const UslFit linear{.lambda = 10, .parameters = 3};
  EXPECT_EQ(usl_knee(linear, 2, 0.95), 2u);
  EXPECT_EQ(usl_knee(linear, 100, 0.95), 95u);
  const UslFit peaked{.lambda = 10, .sigma = 0.02, .kappa = 0.01, .parameters = 3};
  const unsigned knee = usl_knee(peaked, 64, 0.95);
  EXPECT_LT(knee, peaked.peak());
  EXPECT_GE(peaked.rate(knee), 0.95 * peaked.rate(std::round(peaked.peak())));
  EXPECT_LT(peaked.rate(knee - 1), 0.95 * peaked.rate(std::round(peaked.peak())));
}

}  // namespace
}  // namespace millrace::cli
