// SPDX-License-Identifier: Apache-2.0
#pragma once

// Threads and lifetimes: `concat_datasets` may be called from any thread. The dataset that it gives
// shares its parts, so nobody else needs to keep them.

#include <millrace/dataset.h>
#include <millrace/detail/export.h>

#include <memory>
#include <vector>

namespace MILLRACE_API millrace {

/// Several datasets as one: numbers run on from part to part, in this order; a part may come more
/// than once, or be empty itself. `Order::mixed` gives each its share. The fingerprint is what the
/// same records have in one dataset; the fields are those that all parts have, and what is known of
/// them is what all parts that have records say alike; the classes are those of the parts that name
/// any. Throws `Error` (`invalid_argument`) if there are no datasets
/// or a pointer is null, and if two parts name different classes, since their labels would not mean
/// the same.
std::shared_ptr<const Dataset> concat_datasets(std::vector<std::shared_ptr<const Dataset>> parts);

}  // namespace millrace
