// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/file_descriptor.h"
#include "base/sigbus_safe_map.h"
#include "dataset/packed/lmdb_pages.h"

namespace millrace {

/// Returns `path`/data.mdb if `path` is a folder with such a file, otherwise `path`.
std::filesystem::path lmdb_file_at(const std::filesystem::path& path);

/// Throws `Error` (`invalid_argument`) if this version of LMDB writes a data version that millrace
/// cannot read. `name`: the file to be written.
void check_lmdb_version(const std::string& name, int major, int minor, int patch);

/// An LMDB file, read with `LmdbPages` instead of LMDB, so that damage becomes an `Error`,
/// whichever program wrote the file. Reads go through a memory map or pread. Immutable and
/// thread-safe.
class LmdbFile {
 public:
  /// Returns whether the file at `path` is an LMDB file, or an empty one as an interrupted writer
  /// leaves it. Throws `Error`: `not_found` and `io` if it cannot be opened; `corrupt` for a file
  /// of another data version or of a 32-bit program, with the commands that convert it.
  static Status probe(const std::filesystem::path& path);

  /// Opens the file (and maps it if `mapped`), or returns the shared one. Reads both meta pages and
  /// the file's length. Throws `Error`: `incomplete` if nothing was committed to the file; the
  /// other errors of `open_dataset`.
  static std::shared_ptr<const LmdbFile> open(const std::filesystem::path& path, bool mapped);
  /// Shares the file with later calls of `open` in this process. Returns the shared file. That is
  /// another thread's object if that thread has shared its own first.
  static std::shared_ptr<const LmdbFile> share(const std::shared_ptr<const LmdbFile>& file);

  const std::string& name() const { return name_; }
  const LmdbMeta& meta() const { return meta_; }
  std::uint64_t pages() const { return meta_.last_page + 1; }
  std::size_t bytes() const { return pages() * meta_.page_bytes; }
  /// Reasons why the file is not mapped although mapping was requested.
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// Empty if the file is not mapped.
  std::span<const std::byte> map() const {
    return map_ ? map_->bytes() : std::span<const std::byte>();
  }
  /// Returns false once bytes of the map may have been lost.
  bool whole() const { return !map_ || map_->whole(); }
  /// The present length of the file at `name()`; 0 if that is another file now. If the file was
  /// shortened, bytes behind its end read as zeros.
  std::uint64_t length_now() const;

  /// Advises the system that these ranges will be read soon.
  void read_ahead(std::vector<FileRange> ranges) const;
  /// Makes the error that the file cannot be read at `offset`, with the reason.
  Error unreadable(std::uint64_t offset, const std::string& reason) const;
  /// Throws the error of `unreadable` if bytes of the map in `range` were lost.
  void check_not_lost(FileRange range) const;

 private:
  friend class LmdbCursor;
  /// Device, inode, and whether the file is mapped.
  using Id = std::tuple<dev_t, ino_t, bool>;

  LmdbFile(FileDescriptor file, const LmdbMeta& meta, std::string name, Id id);
  static struct LmdbFileRegistry& registry();

  std::string name_;
  LmdbMeta meta_;
  Id id_;
  std::vector<std::string> warnings_;
  // Exactly one of these two is set.
  std::unique_ptr<const SigbusSafeMap> map_;
  FileDescriptor file_;

  friend struct LmdbFileRegistry;
};

/// Reason for wrong bytes in a page that was read without a fault.
inline constexpr const char* shorter_or_damaged =
    "the file was made shorter, or it is damaged there";

/// One thread's cursor over the pages of a file, which must outlive it.
class LmdbCursor final : private FileBytes {
 public:
  explicit LmdbCursor(const LmdbFile& file);
  LmdbCursor(const LmdbCursor&) = delete;
  LmdbCursor& operator=(const LmdbCursor&) = delete;

  /// Calls `find` with the file's pages and returns its result. Returned bytes lie in the map, or
  /// in memory of the cursor that the next call overwrites. Throws `LmdbDamage` if a page on the
  /// way is damaged, and `Error` (`io`, naming file and offset) if a page cannot be read.
  template <typename Find>
  auto with(Find find) const {
    try {
      return find(pages_);
    } catch (const LmdbDamage& damage) {
      throw_if_lost(damage);
      throw;
    }
  }

  /// Returns whether bytes that were found are still unchanged, as far as faults show that. Zeros
  /// behind a shortened file's end cause no fault. The reason names file and offset.
  Status check_intact(std::span<const std::byte> bytes) const;
  /// Bytes of the cursor's memory; 0 if the file is mapped.
  std::size_t held_bytes() const { return buffer_.capacity(); }
  /// Returns the offset of these bytes in a file that is mapped.
  std::uint64_t offset_of(std::span<const std::byte> bytes) const {
    return static_cast<std::uint64_t>(bytes.data() - file_.map().data());
  }

 private:
  const std::byte* read(FileRange range) override;
  void throw_if_lost(const LmdbDamage& damage) const;

  const LmdbFile& file_;
  LmdbPages pages_;
  std::vector<std::byte> buffer_;
  /// The range of the file that `buffer_` holds.
  FileRange held_;
};

}  // namespace millrace
