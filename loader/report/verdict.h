// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/report.h>

namespace millrace {

/// Adds a warning to the report if stalls matter and workers wait for processors for a large part
/// of their time (`worker_delay`).
void warn_of_delay(Report& report);

}  // namespace millrace
