// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/page/page.h"
#include "measure/tune/tune_result.h"

namespace millrace::cli {

/// The contents of the page: the choice and its reasons, the sweep over workers with the fit, a
/// table for each variable, and what could not be measured.
Page page_of(const TuneResult& result);

}  // namespace millrace::cli
