// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace::jpeg {

/// Returns whether the processor has BMI2 with a pdep of few cycles. AMD's processors before Zen 3
/// take up to 300 cycles.
bool has_fast_pdep();

}  // namespace millrace::jpeg
