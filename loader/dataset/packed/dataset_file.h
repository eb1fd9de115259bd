// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataset/packed/lmdb_file.h"
#include "dataset/packed/lmdb_pages.h"
#include "dataset/packed/record_format.h"

namespace millrace {

/// What leads to a dataset's records.
struct DatasetRoot {
  Description description;
  LmdbTree records;
};

/// Reads it from a file's pages. Throws `Error` (`corrupt` or `incomplete`, naming the file `name`)
/// if they hold no dataset or are damaged.
DatasetRoot read_dataset_root(const LmdbPages& pages, const LmdbTree& main,
                              const std::string& name);

/// A dataset file. Immutable; all methods may be called from any thread at once.
class DatasetFile {
 public:
  /// Whether the file at `path` is a dataset, or an empty one as an interrupted writer leaves it,
  /// as far as it is not damaged. Throws `Error` (`not_found`, `io`) if it cannot be opened.
  static Status probe(const std::filesystem::path& path);

  /// The file, opened (and mapped) now unless somebody in this process has it open in the same way.
  /// Throws as `open_dataset` does, except that an incomplete dataset is let through. Reads both
  /// meta pages, the file's length and last page and the few pages that lead to the description and
  /// to the root of the records, but none of the records' own.
  static std::shared_ptr<const DatasetFile> open(const std::filesystem::path& path,
                                                 bool mapped = true);

  const Description& description() const { return root_.description; }
  /// Why it is not mapped as it should be.
  const std::vector<std::string>& warnings() const { return file_->warnings(); }

  /// Checks all that LMDB trusts when it writes on behind the records, and the records themselves.
  /// Reads the whole file, which must be mapped, once. Throws `Error` (`corrupt`, or `io` for what
  /// cannot be read), which names the file, and page or record.
  void check() const;
  /// A hint that these bytes are read soon.
  void read_ahead(std::vector<FileRange> ranges) const { file_->read_ahead(std::move(ranges)); }

 private:
  friend class DatasetCursor;

  explicit DatasetFile(std::shared_ptr<const LmdbFile> file);

  std::shared_ptr<const LmdbFile> file_;
  DatasetRoot root_;
};

/// One thread's way to the records of a file, which must outlive it. `find` and `locate` throw
/// `LmdbDamage` if a page on the way from the root to the record is damaged, and `Error` (`io`,
/// naming file and offset) if it cannot be read.
class DatasetCursor {
 public:
  explicit DatasetCursor(const DatasetFile& file)
      : file_(*file.file_), root_(file.root_), cursor_(file_) {}

  /// The stored value of a record (< `description().records`), in the map or else in memory of the
  /// cursor's own, where the next call overwrites it. What it holds is not checked.
  std::span<const std::byte> find(std::uint64_t index);
  /// Where it lies; pages that hold nothing but the value are not touched.
  FileRange locate(std::uint64_t index);

  /// Whether the value that was found last, `value`, is still what it was: bytes of a map can be
  /// lost at any time. The reason names file and offset.
  Status check_kept(std::span<const std::byte> value) const;

 private:
  const LmdbFile& file_;
  const DatasetRoot& root_;
  LmdbCursor cursor_;
  LmdbPlace place_;
};

}  // namespace millrace
