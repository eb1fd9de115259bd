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
#include "base/guarded_map.h"

namespace millrace {

/// What begins a file of notes. All numbers are little-endian:
///     8 bytes  "MRnotes1", the format
///     8 bytes  how many records there are, n
///     8 bytes  the dataset's fingerprint, or 0
///     8 bytes  the XXH3-64 of the bytes before
///     n + 1 numbers of 8 bytes: where each record's note begins in the file, and where the last
///              one ends, which is the file's end
///     the notes, in the order of their records; an empty one is none
struct NotesHeader {
  static constexpr std::size_t bytes = 32;
  static constexpr std::size_t most_note_bytes = std::size_t{16} << 20;

  std::uint64_t records = 0;
  std::uint64_t fingerprint = 0;

  std::vector<std::byte> packed() const;
  /// Nullopt if the bytes are no such header.
  static std::optional<NotesHeader> unpack(std::span<const std::byte> packed);
  /// Where the notes begin.
  std::uint64_t end_of_table() const { return bytes + (records + 1) * sizeof(std::uint64_t); }
};

/// Notes of a dataset's records as they lie in a file. Whatever is in it: a note is some bytes of
/// it, or none. All functions may be called from any thread at once.
class StoredNotes {
 public:
  /// Null if the dataset's file `file` has no notes, and if they are not of this dataset; then
  /// `warnings` gets a sentence that says why they are not used. `mapped` is as in `OpenOptions`.
  static std::unique_ptr<const StoredNotes> open(const std::filesystem::path& file,
                                                 const NotesHeader& dataset, bool mapped,
                                                 std::vector<std::string>& warnings);

  /// Empty if the record has none, or its note cannot be read.
  void read(std::uint64_t record, std::vector<std::byte>& note) const;

  /// The first record with an impossible offset in the table; nullopt if the table is sound.
  std::optional<std::uint64_t> first_misplaced() const;

 private:
  bool read_at(std::uint64_t offset, std::span<std::byte> bytes) const;

  NotesHeader header_;
  std::uint64_t bytes_ = 0;
  // One of them.
  std::unique_ptr<const GuardedMap> map_;
  FileDescriptor file_;
};

}  // namespace millrace
