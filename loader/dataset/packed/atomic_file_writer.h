// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "base/file_descriptor.h"

namespace millrace {

/// Writes a file beside its target and replaces the target atomically at the end. The destructor
/// deletes an unfinished file. For one thread.
class AtomicFileWriter {
 public:
  /// Begins to write the target `path`. Throws `Error`: `already_exists` if `may_replace` returns
  /// false for an existing target, or if another writer is writing the same target; `io`. `what`
  /// names the kind of file in messages.
  AtomicFileWriter(std::filesystem::path path, bool (*may_replace)(const std::filesystem::path&),
                   const char* what);
  ~AtomicFileWriter();
  AtomicFileWriter(const AtomicFileWriter&) = delete;
  AtomicFileWriter& operator=(const AtomicFileWriter&) = delete;

  int number() const { return file_.get(); }
  /// Appends all of `bytes`. Throws `Error` (`io`).
  void write(std::span<const std::byte> bytes) const;
  /// Throws `Error` (`io`) unless `error`, an errno, is 0.
  void try_to(int error) const;
  /// Syncs the file to storage and moves it to its target.
  void replace();

 private:
  const std::filesystem::path path_;
  const std::filesystem::path beside_;
  FileDescriptor file_;
};

}  // namespace millrace
