// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/sigbus_safe_map.h"

namespace millrace {

/// Header of a file of record hints. All numbers are little-endian:
///     8 bytes  "MRnotes1", the format;
///     8 bytes  n, the number of records;
///     8 bytes  the dataset's fingerprint, or 0;
///     8 bytes  the XXH3-64 of the bytes before;
///     n + 1 numbers of 8 bytes: the offset in the file of each record's hint, then the end of the
///              last one, which is the length of the file;
///     the hints, in the order of their records. An empty one means that the record has no hint.
struct HintsHeader {
  static constexpr std::size_t bytes = 32;
  static constexpr std::size_t max_hint_bytes = std::size_t{16} << 20;

  std::uint64_t records = 0;
  std::uint64_t fingerprint = 0;

  std::vector<std::byte> packed() const;
  /// Returns nullopt if the bytes are not a valid header.
  static std::optional<HintsHeader> unpack(std::span<const std::byte> packed);
  /// Offset of the first hint in the file.
  std::uint64_t end_of_table() const { return bytes + (records + 1) * sizeof(std::uint64_t); }
};

/// Record hints that are stored in a file. The file is not trusted: whatever it contains, a hint is
/// empty or some bytes of the file. Thread-safe.
class StoredHints {
 public:
  /// Opens the hints stored beside the dataset's file `file`. Returns null without a warning if
  /// that file has no hints. Returns null and adds the reason to `warnings` if the hints belong to
  /// another dataset or cannot be used. `mapped` is as in `OpenOptions`.
  static std::unique_ptr<const StoredHints> open(const std::filesystem::path& file,
                                                 const HintsHeader& dataset, bool mapped,
                                                 std::vector<std::string>& warnings);

  /// Reads a record's hint. `hint` becomes empty if the record has no hint or the hint cannot be
  /// read.
  void read(std::uint64_t record, std::vector<std::byte>& hint) const;

  /// Returns the first record with an impossible offset in the table; nullopt if all offsets are
  /// possible.
  std::optional<std::uint64_t> first_misplaced() const;

 private:
  bool read_at(std::uint64_t offset, std::span<std::byte> bytes) const;

  HintsHeader header_;
  std::uint64_t bytes_ = 0;
  // Exactly one of these two is set.
  std::unique_ptr<const SigbusSafeMap> map_;
  FileDescriptor file_;
};

}  // namespace millrace
