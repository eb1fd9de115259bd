// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace::cli {

/// The one-sided quantile of Student's t at a confidence such as 0.95. Degrees of freedom are
/// rounded down to a whole number from 1 up, which errs on the side of caution.
double student_t(double degrees_of_freedom, double confidence);

}  // namespace millrace::cli
