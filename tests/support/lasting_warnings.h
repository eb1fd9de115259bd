// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/report.h>

#include <string>
#include <vector>

namespace millrace::testing {

/// Returns a report's warnings without that of workers that waited for a processor: on a busy
/// machine it may occur at any time.
inline std::vector<std::string> lasting_warnings(const Report& report) {
  std::vector<std::string> warnings = report.warnings;
  std::erase_if(warnings, [](const std::string& warning) {
    return warning.find("kept waiting for a processor") != warning.npos;
  });
  return warnings;
}

}  // namespace millrace::testing
