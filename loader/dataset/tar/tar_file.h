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
#include "dataset/tar/tar_index.h"

namespace millrace {

/// An open tar and the positions of its samples. Immutable and thread-safe.
class TarFile {
 public:
  /// Returns whether a file begins with a tar header. Throws `Error` (`io`) if it cannot be read.
  static Status probe(const std::filesystem::path& path);
  /// Does the same for a file that begins with `begin`, its first block.
  static Status probe_begin(std::span<const std::byte> begin);

  /// Opens a tar. Takes the samples' positions from the index beside it, or else reads all headers.
  /// An index that is damaged or belongs to another tar is ignored with a sentence in `warnings`.
  /// Throws `Error`: `not_found`, `io`, `corrupt` if the tar is damaged or cannot be read in place.
  TarFile(const std::filesystem::path& path, bool mapped, std::vector<std::string>& warnings);

  const std::string& name() const { return name_; }
  std::uint64_t size() const { return index_.samples.size(); }
  const TarIndex& index() const { return index_; }
  /// Returns the byte range of a sample, including its headers.
  FileRange locate(std::uint64_t sample) const;
  /// Returns a sample's bytes including its headers: a view of the map, or of `buffer` if the tar
  /// is not mapped. Throws `Error` (`io`, naming file and offset).
  std::span<const std::byte> read(std::uint64_t sample, std::vector<std::byte>& buffer) const;
  /// Returns whether these mapped bytes are still unchanged. The reason names file and offset.
  Status check_intact(std::span<const std::byte> bytes) const;
  /// Advises the system that these ranges will be read soon.
  void read_ahead(std::vector<FileRange> ranges) const;

 private:
  class Bytes;

  /// Reads into `to` and returns the number of bytes read, which is less at the file's end.
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> to) const;
  bool take_stored_index(Bytes& tar, std::vector<std::string>& warnings);

  std::string name_;
  std::uint64_t bytes_ = 0;
  std::int64_t modified_ns_ = 0;
  // Exactly one of these two is set once the tar is open.
  std::unique_ptr<const SigbusSafeMap> map_;
  FileDescriptor file_;
  TarIndex index_;
};

}  // namespace millrace
