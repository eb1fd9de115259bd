// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "machine/machine.h"
#include "page/html_page.h"

namespace millrace::cli {

/// Where it was measured. `steal`: share of the processors' time that the hypervisor gave to
/// others, where that was measured.
HtmlTable machine_table(const Machine& machine, std::optional<double> steal);

}  // namespace millrace::cli
