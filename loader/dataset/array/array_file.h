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
#include "base/read_ahead.h"
#include "base/sigbus_safe_map.h"

namespace millrace {

/// A file that holds arrays, read through a memory map or by pread. Immutable and thread-safe.
class ArrayFile {
 public:
  /// Opens the regular file at `path` for reading. Throws `Error`, which names it: `not_found`,
  /// `corrupt` if it is not a regular file, `io`.
  static std::shared_ptr<const ArrayFile> open(const std::filesystem::path& path, bool mapped);

  const std::string& name() const { return name_; }
  /// Length in bytes when the file was opened.
  std::uint64_t bytes() const { return bytes_; }

  /// Reasons why the file is not mapped although mapping was requested.
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// Returns the bytes of `range`, which lies within `bytes()`: a view of the map, or of `buffer`
  /// if the file is not mapped. Throws `Error` (`io`, naming file and offset) if pread fails.
  std::span<const std::byte> read(FileRange range, std::vector<std::byte>& buffer) const;
  /// Returns whether the bytes that `read` returned for `range` are still those of the file: mapped
  /// bytes can be lost at any time. The reason names file and offset.
  Status check_intact(FileRange range) const;
  /// Advises the system that these ranges will be read soon.
  void read_ahead(std::vector<FileRange> ranges) const;

 private:
  ArrayFile(FileDescriptor file, std::uint64_t bytes, std::string name, bool mapped);

  FileDescriptor file_;
  std::uint64_t bytes_;
  std::string name_;
  std::vector<std::string> warnings_;
  /// Null if the file is not mapped or is empty.
  std::unique_ptr<const SigbusSafeMap> map_;
};

}  // namespace millrace
