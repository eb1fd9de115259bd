// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

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

/// A dataset file, mapped for reading by `LmdbPages` and not by LMDB, so that damage ends in an
/// `Error`. Immutable; all methods may be called from any thread at once.
class DatasetFile {
 public:
  /// Whether there is an LMDB file at `path`, or an empty one as an interrupted writer leaves it.
  /// Throws `Error` (`not_found`, `io`) if it cannot be opened.
  static Status probe(const std::filesystem::path& path);

  /// The file, mapped now unless somebody in this process has it open. Throws as `open_dataset`
  /// does, except that an incomplete dataset is let through. Reads both meta pages, the file's
  /// length and the few pages that lead to the description and to the root of the records, but none
  /// of the records' own.
  static std::shared_ptr<const DatasetFile> open(const std::filesystem::path& path);

  const Description& description() const { return root_.description; }

  /// Checks all that LMDB trusts when it writes on behind the records, and the records themselves.
  /// Reads the whole file once. Throws `Error` (`corrupt`, naming the file `name`, and page or
  /// record).
  void check(const std::string& name) const;

  /// The stored value of a record (< `description().records`), in the map. Throws `LmdbDamage` if a
  /// page on the way from the root to it is damaged. What the value holds is not checked. `place`
  /// is where the caller's last call for this file ended, or new.
  std::span<const std::byte> find(std::uint64_t index, LmdbPlace& place) const {
    return pages_.find_record(root_.records, index, place);
  }
  /// The same without touching pages that hold nothing but the value.
  std::span<const std::byte> locate(std::uint64_t index, LmdbPlace& place) const {
    return pages_.locate_record(root_.records, index, place);
  }

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(const std::byte* begin) const;
  };

  DatasetFile(int file, const LmdbMeta& meta, const std::string& name);

  std::unique_ptr<const std::byte, Unmap> map_;
  LmdbPages pages_;
  DatasetRoot root_;
};

}  // namespace millrace
