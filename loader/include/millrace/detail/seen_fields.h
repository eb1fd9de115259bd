// SPDX-License-Identifier: Apache-2.0
// Internal: used only by millrace's own folders and not installed.
#pragma once

#include <millrace/dataset.h>
#include <millrace/detail/export.h>

#include <cstddef>
#include <span>
#include <vector>

// Detects the fields of datasets that do not describe them. Threads: all functions may be called by
// several threads at the same time.

namespace MILLRACE_API millrace {

/// Whether a field's bytes are an int64, as labels are: 8 bytes that are not a text.
bool holds_integer(std::span<const std::byte> bytes);

/// Returns `Dataset::field_specs`, followed by further fields that were found in up to 8 records,
/// spread over the dataset. A field that holds integers in most of these records is an int64. A
/// field of constant length that is not a text is uint8 [length]. Any other field is uint8 and
/// varies in length. Its `shape[0]` is the smallest power of two that is at least 4096 and at least
/// twice the longest value. Records that cannot be read are skipped.
std::vector<FieldSpec> seen_field_specs(const Dataset& dataset);

}  // namespace millrace
