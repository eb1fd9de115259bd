// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/pipeline.h>

#include "base/json_members.h"

namespace millrace {

/// Reads the object "run" of an options file into `into`; what it leaves out stays as it is.
/// `source` names the file in messages. Throws `Error` (`invalid_argument`) that names the key and
/// the value.
void read_run_options(const Json& json, const std::string& source, PipelineOptions& into);

}  // namespace millrace
