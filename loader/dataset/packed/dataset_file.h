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

/// The description of a dataset and the tree of its records.
struct DatasetRoot {
  Description description;
  LmdbTree records;
};

/// Reads the root from a file's pages. Throws `Error` (`corrupt` or `incomplete`, naming the file
/// `name`) if the pages are damaged or contain no dataset.
DatasetRoot read_dataset_root(const LmdbPages& pages, const LmdbTree& main,
                              const std::string& name);

/// A dataset file. Immutable and thread-safe.
class DatasetFile {
 public:
  /// Returns whether the file at `path` is a dataset, or empty as an interrupted writer leaves it.
  /// Damaged pages are not an error here. Throws `Error` (`not_found`, `io`) if the file cannot be
  /// opened.
  static Status probe(const std::filesystem::path& path);

  /// Opens the file (and maps it if `mapped`), or returns the file that this process already has
  /// open in the same mode. Also opens an incomplete dataset. Otherwise throws the same errors as
  /// `open_dataset`. Reads both meta pages, the file's length and last page, and the few pages on
  /// the way to the description and to the root of the records, but no records.
  static std::shared_ptr<const DatasetFile> open(const std::filesystem::path& path,
                                                 bool mapped = true);

  const Description& description() const { return root_.description; }
  /// Reasons why the file is not mapped although mapping was requested.
  const std::vector<std::string>& warnings() const { return file_->warnings(); }

  /// Checks everything that LMDB relies on when it appends records, and the records themselves.
  /// Reads the whole file once; the file must be mapped. Throws `Error`, which names the file and
  /// the page or record: `corrupt`, or `io` if it cannot be read.
  void check() const;
  /// Advises the system that these ranges will be read soon.
  void read_ahead(std::vector<FileRange> ranges) const { file_->read_ahead(std::move(ranges)); }

 private:
  friend class DatasetCursor;

  explicit DatasetFile(std::shared_ptr<const LmdbFile> file);

  std::shared_ptr<const LmdbFile> file_;
  DatasetRoot root_;
};

/// One thread's cursor over the records of a file, which must outlive it. `find` and `locate` throw
/// `LmdbDamage` if a page on the way from the root to the record is damaged. They throw `Error`
/// (`io`, naming file and offset) if a page cannot be read.
class DatasetCursor {
 public:
  explicit DatasetCursor(const DatasetFile& file)
      : file_(*file.file_), root_(file.root_), cursor_(file_) {}

  /// Returns the stored value of a record (< `description().records`) without checking it. The
  /// value lies in the map, or in memory of the cursor that the next call overwrites.
  std::span<const std::byte> find(std::uint64_t index);
  /// Returns the byte range of a value. Pages that contain nothing but the value are not touched.
  FileRange locate(std::uint64_t index);

  /// Returns whether the value that was found last, `value`, is still unchanged: mapped bytes can
  /// be lost at any time. The reason names file and offset.
  Status check_intact(std::span<const std::byte> value) const;
  std::size_t held_bytes() const { return cursor_.held_bytes(); }

 private:
  const LmdbFile& file_;
  const DatasetRoot& root_;
  LmdbCursor cursor_;
  LmdbLeafRange place_;
};

}  // namespace millrace
