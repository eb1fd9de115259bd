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
#include "base/read_ahead.h"
#include "dataset/tar/tar_index.h"

namespace millrace {

/// An open tar and where its samples lie. Immutable; all methods may be called from any thread at
/// once.
class TarFile {
 public:
  /// Whether a file begins with a tar's header. Throws `Error` (`io`) if it cannot be read.
  static Status probe(const std::filesystem::path& path);

  /// Opens it, and takes its samples from the index beside it, or else reads all headers. An index
  /// that is not this tar's, or damaged, is a sentence of `warnings`. Throws `Error`: `not_found`,
  /// `io`, `corrupt` for what is no sound tar or cannot be read in place.
  TarFile(const std::filesystem::path& path, bool mapped, std::vector<std::string>& warnings);

  const std::string& name() const { return name_; }
  std::uint64_t size() const { return index_.samples.size(); }
  const TarIndex& index() const { return index_; }
  /// A sample's bytes, headers and all, in the map or else in `buffer`. Throws `Error` (`io`,
  /// naming file and offset).
  std::span<const std::byte> read(std::uint64_t sample, std::vector<std::byte>& buffer) const;
  /// Whether these bytes of the map are still what they were. The reason names file and offset.
  Status check_kept(std::span<const std::byte> bytes) const;
  /// A hint that these samples are read soon.
  void read_ahead(std::span<const std::uint64_t> samples) const;

 private:
  class Bytes;

  std::string why_unreadable(std::uint64_t offset, const std::string& reason) const;
  /// Reads into `to`; returns how much was there.
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> to) const;
  bool take_stored_index(Bytes& tar, std::vector<std::string>& warnings);

  std::string name_;
  std::uint64_t bytes_ = 0;
  std::int64_t modified_ns_ = 0;
  // One of them, once it is open.
  std::unique_ptr<const GuardedMap> map_;
  FileDescriptor file_;
  TarIndex index_;
};

}  // namespace millrace
