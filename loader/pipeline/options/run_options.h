// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/pipeline_options.h>

#include "base/json_members.h"

namespace millrace {

/// Reads the object "run" of an options file into `into`. Options that the object does not contain
/// keep their values. `source` names the file in messages. Throws `Error` (`invalid_argument`) with
/// the key and the value.
void read_run_options(const Json& json, const std::string& source, PipelineOptions& into);

}  // namespace millrace
