// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/detail/export.h>
#include <millrace/runtime.h>

// Threads: the functions may be called from any thread, a `NotesWriter` by one thread at a time.
// Lifetimes: a `NotesWriter` shares the ownership of the dataset's parts.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace MILLRACE_API millrace {

/// The file beside a dataset's file that notes of its records are stored in, where there is one:
/// photos.lmdb.index of photos.lmdb. Of a link it lies beside what that leads to.
std::filesystem::path stored_notes_path(const std::filesystem::path& file);

/// Whether a file begins as one of notes; false if it cannot be read.
bool is_notes_file(const std::filesystem::path& path);

/// Checks the table of each file of notes that the dataset uses. Returns a sentence for each table
/// with an impossible offset; readers ignore the notes of such records. The notes are not read.
std::vector<std::string> damaged_note_tables(const Dataset& dataset);

/// Stores notes of a dataset's records (`Sample::note`) beside each of its files, where
/// `open_dataset` finds them from then on: in place of those from before, as soon as all of a
/// file's records have theirs. The dataset is not touched. For one thread.
class NotesWriter {
 public:
  /// Begins with the first file. Throws `Error`: `invalid_argument` for a dataset that does not
  /// consist of files, or not of those that are there now, `already_exists` while somebody else
  /// writes the same notes and if another file has their name, `io`.
  explicit NotesWriter(const std::shared_ptr<const Dataset>& dataset);
  /// A file that is not whole leaves no trace.
  ~NotesWriter();

  /// Takes the note of the next record; empty if it has none. A note that is longer than a reader
  /// takes (16 MiB) counts as none. Throws `Error` as the constructor does for the next file;
  /// behind the last record, and behind an error, `invalid_argument`.
  void append(std::span<const std::byte> note);
  /// Throws `Error` (`invalid_argument`) unless all records have theirs.
  void finish();

  /// How many records have a note, and how many bytes those take.
  std::uint64_t notes() const { return notes_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  class File;

  void next_file();

  std::vector<std::shared_ptr<const Dataset>> parts_;
  std::size_t begun_ = 0;
  std::unique_ptr<File> file_;
  std::uint64_t notes_ = 0;
  std::uint64_t bytes_ = 0;
};

/// Stores what the pipelines of a runtime have noted of a dataset so far, and of other records what
/// was stored before. Returns how many records have a note. Pipelines may run meanwhile. The
/// dataset must have been opened with checksums, which image transforms bind their notes to.
/// Throws as `NotesWriter`.
std::uint64_t save_notes(const std::shared_ptr<const Dataset>& dataset, Runtime& runtime);

}  // namespace millrace
