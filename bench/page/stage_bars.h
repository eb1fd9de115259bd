// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/report.h>

#include <optional>
#include <string>

namespace millrace::cli {

/// A bar per stage of the road: how much of its time it was busy, waited for input or for room for
/// its output; and a table with the numbers. `device_idle` (0 to 1) adds the device. Markup.
std::string draw_stages(const Report& report, std::optional<double> device_idle);

}  // namespace millrace::cli
