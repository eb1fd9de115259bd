// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/detail/export.h>

// Threads and lifetimes: the function may be called by several threads at the same time. Its result
// is plain data.

#include <cstdint>
#include <string_view>
#include <vector>

namespace MILLRACE_API millrace {

/// Returns the number of bytes of `field` in each record, in the order of the records: the lengths
/// for `Order::bucketed`. Values saturate at 2^32 - 1. A record that cannot be read (`bad_record`)
/// has 0: a pipeline applies its policy for bad records later. Throws every other `Error` of
/// reading, such as `not_found` if a record has no such field.
///
/// It reads every record once, in order, on the calling thread. It announces the records to the
/// dataset beforehand (`Dataset::prefetch`). For a packed dataset this takes as long as comparing
/// its checksums. If the dataset was opened without `OpenOptions::verify_checksums`, only the pages
/// with the records' headers are read.
std::vector<std::uint32_t> record_lengths(const Dataset& dataset, std::string_view field);

}  // namespace millrace
