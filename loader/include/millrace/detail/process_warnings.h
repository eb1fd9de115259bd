// SPDX-License-Identifier: Apache-2.0
// Warnings about the whole process, for the reports of all its pipelines. Used only by millrace's
// own folders.
//
// Threads: any thread may call these functions.
#pragma once

#include <millrace/detail/export.h>

#include <string>
#include <vector>

namespace MILLRACE_API millrace {

/// Adds a sentence to `Report::warnings` of all pipelines of this process, until the process ends.
void add_process_warning(std::string text);

/// Returns the sentences so far, oldest first.
std::vector<std::string> process_warnings();

}  // namespace millrace
