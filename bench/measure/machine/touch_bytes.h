// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>

#include <cstddef>

namespace millrace::cli {

/// Reads a byte of each page of a record's fields. `DatasetReader::read` does not touch the bytes
/// of mapped files without checksums. After this call `intact` returns whether they can be read.
inline void touch_bytes(const Record& record) {
  constexpr std::size_t smallest_page = 4096;
  for (const RecordField& field : record.fields()) {
    const volatile std::byte* bytes = field.bytes.data();
    for (std::size_t at = 0; at < field.bytes.size(); at += smallest_page) (void)bytes[at];
    if (!field.bytes.empty()) (void)bytes[field.bytes.size() - 1];
  }
}

}  // namespace millrace::cli
