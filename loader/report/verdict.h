// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/report.h>

namespace millrace {

/// Adds to `report.warnings` if workers wait for processors for much of their time
/// (`worker_delay`).
void warn_of_delay(Report& report);

}  // namespace millrace
