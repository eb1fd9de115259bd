// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/guarded_map.h"

namespace millrace {

/// Where bytes lie in a file.
struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;

  std::uint64_t end() const { return begin + bytes; }
};

/// A file that arrays are read from, through a map or call by call. Immutable; all methods may be
/// called from any thread at once.
class ArrayFile {
 public:
  /// Opens the file at `path`, a regular one, for reading. Throws `Error`, which names it:
  /// `not_found`, `corrupt` if it is something else than a file, `io`.
  static std::shared_ptr<const ArrayFile> open(const std::filesystem::path& path, bool mapped);

  const std::string& name() const { return name_; }
  /// Its length when it was opened.
  std::uint64_t bytes() const { return bytes_; }

  /// Why it is not mapped as it should be.
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// The bytes of `range`, which lies within `bytes()`: in the map, or else in `buffer`. Throws
  /// `Error` (`io`, naming file and offset) if they cannot be read call by call.
  std::span<const std::byte> read(ByteRange range, std::vector<std::byte>& buffer) const;
  /// Whether what `read` gave of `range` is still what the file has: bytes of a map can be lost at
  /// any time. The reason names file and offset.
  Status check_kept(ByteRange range) const;
  /// A hint that these bytes are read soon.
  void read_ahead(std::vector<ByteRange> ranges) const;

 private:
  ArrayFile(FileDescriptor file, std::uint64_t bytes, std::string name, bool mapped);

  FileDescriptor file_;
  std::uint64_t bytes_;
  std::string name_;
  std::vector<std::string> warnings_;
  /// Null if it is not mapped, or empty.
  std::unique_ptr<const GuardedMap> map_;
};

}  // namespace millrace
