// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/runtime.h>
#include <millrace/transform.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/samples/sample_maker.h"

namespace millrace {

/// Sets the cache for the transform's samples or, if they are not cached, for its recoded records.
/// Adds a warning if `bytes` has no effect or exceeds the usable memory.
void add_cache(RecordCaches& caches, Runtime& runtime,
               const std::shared_ptr<const Dataset>& dataset, const Transform& transform,
               std::size_t bytes, std::vector<std::string>& warnings);

}  // namespace millrace
