// SPDX-License-Identifier: Apache-2.0
#include "measure/bench/student_t.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace millrace::cli {
namespace {

/// Computes in double precision. Boost's default, long double, throws an exception before main()
/// under valgrind, which computes with fewer bits.
using Policy = boost::math::policies::policy<boost::math::policies::promote_double<false>>;

}  // namespace

double student_t(double degrees_of_freedom, double confidence) {
  const boost::math::students_t_distribution<double, Policy> law(
      std::max(1.0, std::floor(degrees_of_freedom)));
  return boost::math::quantile(law, confidence);
}

}  // namespace millrace::cli
