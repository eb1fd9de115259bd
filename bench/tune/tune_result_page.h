// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tune/tune_page.h"
#include "tune/tune_result.h"

namespace millrace::cli {

/// What a page shows of a tune; `to_html` makes the page.
TunePage page_of(const TuneResult& result);

}  // namespace millrace::cli
