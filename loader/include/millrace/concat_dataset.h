// SPDX-License-Identifier: Apache-2.0
#pragma once

// Threads and lifetimes: `concat_datasets` may be called from any thread. The returned dataset
// shares ownership of its parts.

#include <millrace/dataset.h>
#include <millrace/detail/export.h>

#include <memory>
#include <vector>

namespace MILLRACE_API millrace {

/// Joins several datasets into one. Record numbers continue from part to part, in the given order.
/// A part may be empty and may occur more than once. `Order::mixed` gives each part its share of an
/// epoch.
///
/// The fingerprint is the one that the same records have in a single dataset. The fields are those
/// that all parts have. The specification of a field is kept if it is the same in all parts that
/// have records. The classes are taken from the parts that name classes.
///
/// Throws `Error` (`invalid_argument`) if `parts` is empty or a pointer is null. Also throws if two
/// parts name different classes, because their labels would have different meanings.
std::shared_ptr<const Dataset> concat_datasets(std::vector<std::shared_ptr<const Dataset>> parts);

}  // namespace millrace
