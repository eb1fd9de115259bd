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
  /// Replace an existing file. The old one leaves its folder as the writer is made; readers that have it open keep it.
  bool overwrite = false;
  /// Records are committed to storage each time this many bytes have been appended. They are held in memory until then.
  std::size_t commit_bytes = std::size_t{32} << 20;
};

/// Writes a dataset file (see `open_dataset`) record by record. Until `finish()` has returned, every reader refuses the file as
/// incomplete. What was committed stays in it when the process is killed; a power failure can undo the last commit, no more. The
/// LMDB map grows by itself. One thread at a time. After an `io` error every later call throws the same one.
class DatasetWriter {
 public:
  /// Creates `path`, as a dataset that is incomplete and has no records yet. Throws `Error`: `already_exists` where it exists and
  /// `overwrite` is not set, or where another writer is at work on it; `io` where it cannot be created.
  explicit DatasetWriter(std::filesystem::path path, WriterOptions options = {});
  /// Leaves the file incomplete unless `finish()` was called.
  ~DatasetWriter();
  DatasetWriter(DatasetWriter&&) noexcept;
  DatasetWriter& operator=(DatasetWriter&&) noexcept;

  /// Appends a record; its number is the count of those before it. The field names and their order must be the same for every
  /// record of a file. Copies the bytes. Throws `Error`: `invalid_argument` for other fields, a record of 4 GiB or more, or a
  /// writer that has finished or was moved from; `io` when the disk is full.
  void append(std::span<const RecordField> fields);

  /// Names of the classes that the "label" field counts, from 0, kept in the dataset's description. In names that are not UTF-8
  /// the bytes that are wrong are replaced.
  void set_classes(std::vector<std::string> names);

  /// Commits what is left, writes the description and syncs it to storage; the dataset is complete then. A second call does
  /// nothing.
  void finish();

  /// Records appended so far.
  std::uint64_t size() const;
  /// Those of them that are committed to storage.
  std::uint64_t committed() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace
