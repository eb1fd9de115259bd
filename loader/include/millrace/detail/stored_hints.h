// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/detail/export.h>

// Threads: the functions may be called from any thread, a `HintsWriter` by one thread at a time.
// Lifetimes: a `HintsWriter` shares ownership of the dataset's parts.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace MILLRACE_API millrace {

/// Path of the file with stored record hints, beside a dataset's file: photos.lmdb.index beside
/// photos.lmdb. For a symbolic link: beside its target.
std::filesystem::path stored_hints_path(const std::filesystem::path& file);

/// Whether a file begins with the magic number of a file of hints; false if it cannot be read.
bool is_hints_file(const std::filesystem::path& path);

/// Checks the table of each hint file that the dataset uses. Returns a sentence for each table with
/// an impossible offset; readers ignore the hints of such records. The hints themselves are not
/// read.
std::vector<std::string> damaged_hint_tables(const Dataset& dataset);

/// Stores hints for a dataset's records (`Sample::hint`) in a file beside each of its files. Later
/// calls of `open_dataset` find them there. A file's new hints replace the earlier ones when the
/// hints of all its records have been appended. The dataset itself is not changed. For one thread.
class HintsWriter {
 public:
  /// Begins with the first file. Throws `Error`: `invalid_argument` for a dataset that does not
  /// consist of files, or whose files were replaced meanwhile; `already_exists` while another
  /// writer writes the same hints, or if a file of another kind has their name; `io`.
  explicit HintsWriter(const std::shared_ptr<const Dataset>& dataset);
  /// Deletes an incomplete file.
  ~HintsWriter();

  /// Appends the hint of the next record; an empty one if the record has none. A hint that exceeds
  /// the limit of readers (16 MiB) is not stored. Throws `Error` like the constructor for the next
  /// file, and `invalid_argument` after the last record and after an error.
  void append(std::span<const std::byte> hint);
  /// Appends the hint that was stored for the next record when its file was begun; an empty one if
  /// none was. Throws like `append`.
  void append_stored();
  /// Throws `Error` (`invalid_argument`) unless a hint was appended for all records.
  void finish();

  /// Number of records that have a hint, and total bytes of the hints.
  std::uint64_t hints() const { return hints_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  class File;

  void next_file();

  std::vector<std::shared_ptr<const Dataset>> parts_;
  std::size_t begun_ = 0;
  std::unique_ptr<File> file_;
  std::vector<std::byte> stored_;
  std::uint64_t hints_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace millrace
