// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "base/file_descriptor.h"

namespace millrace {

/// A file that is written beside the one that it replaces; it goes if that comes to nothing. For
/// one thread.
class FileBeside {
 public:
  /// Throws `Error`: `already_exists` if what is there is not `is_own`, a `what`, and while
  /// somebody else writes the same file, `io`.
  FileBeside(std::filesystem::path path, bool (*is_own)(const std::filesystem::path&),
             const char* what);
  ~FileBeside();
  FileBeside(const FileBeside&) = delete;
  FileBeside& operator=(const FileBeside&) = delete;

  int number() const { return file_.get(); }
  /// Writes all of it. Throws `Error` (`io`).
  void write(std::span<const std::byte> bytes) const;
  /// Takes the number of a system's error, or 0. Throws `Error` (`io`).
  void try_to(int error) const;
  /// Puts it in its place, when all of it is on its disk.
  void replace();

 private:
  const std::filesystem::path path_;
  const std::filesystem::path beside_;
  FileDescriptor file_;
};

}  // namespace millrace
