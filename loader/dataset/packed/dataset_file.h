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

/// Reads it from a file's pages. Throws `Error` (`corrupt`, `incomplete`; naming the file `name`)
/// where they hold no dataset or are damaged.
DatasetRoot read_dataset_root(const LmdbPages& pages, const LmdbTree& main,
                              const std::string& name);

/// A dataset file, mapped for reading, not by LMDB but by `LmdbPages`: damage ends in an `Error`.
/// Immutable; all methods may be called from any thread at once.
class DatasetFile {
 public:
  /// The file, mapped now unless somebody in this process has it open. Throws as `open_dataset`
  /// does, except that an incomplete dataset is let through. Looks at both meta pages, the file's
  /// length and the few pages that lead to the description and to the root of the records; at none
  /// of the records' own.
  static std::shared_ptr<const DatasetFile> open(const std::filesystem::path& path);

  const Description& description() const { return root_.description; }

  /// The stored value of a record (< `description().records`), in the map. Throws `Error`
  /// (`bad_record`) where a page on the way from the root to it is damaged. What the value holds is
  /// not looked at. `place` is where the caller's last call for this file ended, or new.
  std::span<const std::byte> find(std::uint64_t index, LmdbPlace& place) const;
  /// The same without touching pages that hold nothing but the value.
  std::span<const std::byte> locate(std::uint64_t index, LmdbPlace& place) const;

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
