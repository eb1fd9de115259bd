// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <span>
#include <string>

#include "targets/target_worker.h"

namespace millrace {

/// Writes rows of `row_bytes` each to a sample's field of varying length. For rows that belong to
/// boxes (`belongs_to_boxes`) it writes those of the kept boxes. Returns a bad status, with the
/// reason, if the number of rows is not the number of boxes.
inline Status write_rows(std::span<const std::byte> bytes, std::size_t row_bytes,
                         bool belongs_to_boxes, const TargetWorker::Kept& kept, Sample& sample,
                         std::size_t field) {
  auto* to = static_cast<std::byte*>(sample[field].data);
  const std::size_t rows = bytes.size() / row_bytes;
  if (!belongs_to_boxes) {
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
    sample.set_length(field, rows);
    return Status::ok();
  }
  if (rows != kept.boxes)
    return Status::bad("has " + std::to_string(rows) + " rows, and the record " +
                       std::to_string(kept.boxes) + " boxes");
  for (const std::uint32_t row : kept.rows) {
    std::memcpy(to, bytes.data() + row * row_bytes, row_bytes);
    to += row_bytes;
  }
  sample.set_length(field, kept.rows.size());
  return Status::ok();
}

/// Returns a bad status, with the reason, if the bytes are not whole rows, or if there are too
/// many.
inline Status check_rows(std::span<const std::byte> bytes, std::size_t row_bytes, int max_length,
                         bool belongs_to_boxes) {
  if (bytes.size() % row_bytes != 0)
    return Status::bad("has " + std::to_string(bytes.size()) + " bytes; a row has " +
                       std::to_string(row_bytes));
  const std::size_t rows = bytes.size() / row_bytes;
  if (!belongs_to_boxes && rows > static_cast<std::size_t>(max_length))
    return Status::bad("has " + std::to_string(rows) + " rows; the recipe's \"max_length\" is " +
                       std::to_string(max_length));
  return Status::ok();
}

}  // namespace millrace
