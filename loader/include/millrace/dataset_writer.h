// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

struct WriterOptions {
  /// Replace an existing file. The old file is removed when the first records are committed, so readers that have it
  /// open keep it.
  bool overwrite = false;
  /// Records are committed to storage each time this many bytes have been appended.
  std::size_t commit_bytes = std::size_t{32} << 20;
};

/// Writes a dataset file (see `open_dataset`) record by record. Until `finish()` has returned, every reader refuses the file as
/// incomplete; what was committed before a crash stays in it. The LMDB map grows by itself. One thread at a time.
class DatasetWriter {
 public:
  /// Creates `path`. Throws `Error`: `already_exists` where it exists and `overwrite` is not set, or where another writer
  /// is at work on it; `io` where it cannot be created.
  explicit DatasetWriter(std::filesystem::path path, WriterOptions options = {});
  /// Leaves the file incomplete unless `finish()` was called.
  ~DatasetWriter();
  DatasetWriter(DatasetWriter&&) noexcept;
  DatasetWriter& operator=(DatasetWriter&&) noexcept;

  /// Appends a record; its number is the count of those before it. The field names and their order must be the same for every
  /// record of a file. Copies the bytes. Throws `Error`: `invalid_argument` for other fields, `io` when the disk is full.
  void append(std::span<const RecordField> fields);

  /// Names of the classes that the "label" field counts, kept in the dataset's description.
  void set_classes(std::vector<std::string> names);

  /// Commits what is left, writes the description and syncs it to storage; the dataset is complete then.
  void finish();

  /// Records appended so far.
  std::uint64_t size() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace
