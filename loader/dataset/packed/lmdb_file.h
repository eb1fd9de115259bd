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
#include "base/guarded_map.h"
#include "dataset/packed/lmdb_pages.h"

namespace millrace {

/// The file of an LMDB environment that is a folder, `path`/data.mdb; `path` itself if there is
/// none.
std::filesystem::path lmdb_file_at(const std::filesystem::path& path);

/// Throws `Error` (`invalid_argument`) if LMDB of this version writes a data version that millrace
/// cannot read. `name`: the file to be written.
void check_lmdb_version(const std::string& name, int major, int minor, int patch);

/// Whoever wrote it: a file of LMDB's, read by `LmdbPages` and not by LMDB, so that damage ends in
/// an `Error`; through a map, or call by call. Immutable; all methods may be called from any thread
/// at once.
class LmdbFile {
 public:
  /// Whether there is an LMDB file at `path`, or an empty one as an interrupted writer leaves it.
  /// Throws `Error`: `not_found` and `io` if it cannot be opened; `corrupt` for a file of another
  /// data version, or of a 32-bit program, with the commands that convert it.
  static Status probe(const std::filesystem::path& path);

  /// The file, opened (and mapped) now unless it is shared already. Reads both meta pages and the
  /// file's length. Throws `Error`: `incomplete` if nothing was committed to it, and as
  /// `open_dataset`.
  static std::shared_ptr<const LmdbFile> open(const std::filesystem::path& path, bool mapped);
  /// Gives it out from now on to all in this process who open the file in the same way. Returns
  /// the one that is shared, which is another if somebody was faster.
  static std::shared_ptr<const LmdbFile> share(const std::shared_ptr<const LmdbFile>& file);

  const std::string& name() const { return name_; }
  const LmdbMeta& meta() const { return meta_; }
  std::uint64_t pages() const { return meta_.last_page + 1; }
  std::size_t bytes() const { return pages() * meta_.page_bytes; }
  /// Why it is not mapped as it should be.
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// Empty if the file is not mapped.
  std::span<const std::byte> map() const {
    return map_ ? map_->bytes() : std::span<const std::byte>();
  }
  /// False once bytes of the map may have been lost.
  bool whole() const { return !map_ || map_->whole(); }
  /// What the file has behind its shortened end are zeros. Its length now; 0 if another file has
  /// its name.
  std::uint64_t length_now() const;

  /// A hint that these bytes are read soon.
  void read_ahead(std::vector<FileRange> ranges) const;
  /// What cannot be read, and why.
  Error unreadable(std::uint64_t offset, const std::string& reason) const;
  /// Throws that if bytes of the map were lost.
  void check_not_lost(FileRange range) const;

 private:
  friend class LmdbCursor;
  /// Device and inode, and whether mapped.
  using Id = std::tuple<dev_t, ino_t, bool>;

  LmdbFile(FileDescriptor file, const LmdbMeta& meta, std::string name, Id id);
  static struct LmdbFileRegistry& registry();

  std::string name_;
  LmdbMeta meta_;
  Id id_;
  std::vector<std::string> warnings_;
  // One of them.
  std::unique_ptr<const GuardedMap> map_;
  FileDescriptor file_;

  friend struct LmdbFileRegistry;
};

/// Why bytes of a page are wrong of which no fault told.
inline constexpr const char* shorter_or_damaged =
    "the file was made shorter, or it is damaged there";

/// One thread's way to the pages of a file, which must outlive it.
class LmdbCursor final : private FileBytes {
 public:
  explicit LmdbCursor(const LmdbFile& file);
  LmdbCursor(const LmdbCursor&) = delete;
  LmdbCursor& operator=(const LmdbCursor&) = delete;

  /// Calls `find` with the file's pages, and returns what it returns: bytes in the map or else in
  /// memory of the cursor's own, which the next call overwrites. Throws `LmdbDamage` if a page on
  /// the way is damaged, and `Error` (`io`, naming file and offset) if it cannot be read.
  template <typename Find>
  auto with(Find find) const {
    try {
      return find(pages_);
    } catch (const LmdbDamage& damage) {
      throw_if_lost(damage);
      throw;
    }
  }

  /// Whether bytes that were found are still what they were, as far as faults tell: not of zeros
  /// that a file's new end has behind it. The reason names file and offset.
  Status check_kept(std::span<const std::byte> bytes) const;
  /// Where they lie in the file, if that is mapped.
  std::uint64_t offset_of(std::span<const std::byte> bytes) const {
    return static_cast<std::uint64_t>(bytes.data() - file_.map().data());
  }

 private:
  const std::byte* read(FileRange range) override;
  void throw_if_lost(const LmdbDamage& damage) const;

  const LmdbFile& file_;
  LmdbPages pages_;
  std::vector<std::byte> buffer_;
  /// What it has.
  FileRange held_;
};

}  // namespace millrace
