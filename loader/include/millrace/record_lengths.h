// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/detail/export.h>

// Threads and lifetimes: it may be called from any thread at once, and what it gives refers to
// nothing.

#include <cstdint>
#include <string_view>
#include <vector>

namespace MILLRACE_API millrace {

/// How many bytes `field` has in each record of a dataset, in the order of its records: the lengths
/// for `Order::bucketed`. More than 2^32 - 1 are that many. A record that cannot be read
/// (`bad_record`) has 0, since a pipeline has its own way with bad ones. Any other `Error` of
/// reading is thrown on, such as `not_found` if a record has no such field.
///
/// It reads every record once, one after the other, on the calling thread, telling the dataset of
/// them before. So a packed dataset takes what comparing its checksums takes; opened without
/// `OpenOptions::verify_checksums` only the pages that hold the records' heads are touched.
std::vector<std::uint32_t> record_lengths(const Dataset& dataset, std::string_view field);

}  // namespace millrace
