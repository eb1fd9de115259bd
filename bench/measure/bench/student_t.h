// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace::cli {

/// One-sided quantile of Student's t distribution at a confidence such as 0.95. Degrees of freedom
/// are rounded down to a whole number of at least 1, which is conservative.
double student_t(double degrees_of_freedom, double confidence);

}  // namespace millrace::cli
