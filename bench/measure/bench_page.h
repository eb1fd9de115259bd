// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/trace.h>

#include <string>

#include "measure/bench_output.h"

namespace millrace::cli {

/// A page about a bench: the verdict, its numbers, where the time went, and what was measured
/// where. One file that needs no other.
std::string to_html(const BenchRecord& record, const Trace& trace);

}  // namespace millrace::cli
