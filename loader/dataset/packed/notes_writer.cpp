// SPDX-License-Identifier: Apache-2.0
#include <millrace/error.h>
#include <millrace/stored_notes.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "dataset/packed/file_beside.h"
#include "dataset/record_notes.h"
#include "dataset/stored_notes.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// Appends the single-file datasets that a dataset consists of, in order.
void add_parts(const std::shared_ptr<const Dataset>& dataset,
               std::vector<std::shared_ptr<const Dataset>>& all) {
  const auto parts = dataset->parts();
  for (const auto& part : parts) add_parts(part, all);
  if (!parts.empty()) return;
  if (dataset->facts().files.size() != 1)
    throw Error(ErrorCode::invalid_argument,
                dataset->name() + " is not a single file, so hints cannot be stored beside it");
  all.push_back(dataset);
}

/// Buffered writer to one part of a file.
class PlacedBytes {
 public:
  explicit PlacedBytes(std::uint64_t offset) : offset_(offset) {}

  std::uint64_t end() const { return offset_ + held_.size(); }

  /// Appends bytes. Returns 0 or an errno.
  int put(int file, std::span<const std::byte> bytes) {
    constexpr std::size_t enough = std::size_t{1} << 18;
    held_.insert(held_.end(), bytes.begin(), bytes.end());
    return held_.size() < enough ? 0 : flush(file);
  }
  int flush(int file) {
    for (std::span<const std::byte> left = held_; !left.empty();) {
      const ssize_t written = ::pwrite(file, left.data(), left.size(), static_cast<off_t>(offset_));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return written < 0 ? errno : EIO;
      offset_ += static_cast<std::uint64_t>(written);
      left = left.subspan(static_cast<std::size_t>(written));
    }
    held_.clear();
    return 0;
  }

 private:
  std::uint64_t offset_;
  std::vector<std::byte> held_;
};

NotesHeader header_of(const Dataset& dataset) {
  return {.records = dataset.size(), .fingerprint = dataset.facts().fingerprint.value_or(0)};
}

/// Throws `Error` (`invalid_argument`) unless the file still has exactly the records of `dataset`.
/// It may have been replaced since, or `dataset` may be only a part of it.
void check_is_at(const Dataset& dataset, const std::string& file) {
  // Without a fingerprint the records cannot be compared. But each hint identifies the bytes that
  // it belongs to.
  if (!dataset.facts().fingerprint) return;
  const auto there = open_dataset(file, {.map = false, .notes = false});
  const NotesHeader expected = header_of(dataset);
  const NotesHeader found = header_of(*there);
  if (found.records != expected.records || found.fingerprint != expected.fingerprint)
    throw Error(ErrorCode::invalid_argument,
                file + " has other records than the dataset that the hints belong to");
}

}  // namespace

/// The hints of one file's records.
class NotesWriter::File {
 public:
  explicit File(const Dataset& dataset)
      : records_(dataset.size()),
        file_(stored_notes_path(dataset.facts().files.front()), is_notes_file,
              "a file of record hints"),
        table_(NotesHeader::bytes),
        notes_(header_of(dataset).end_of_table()) {
    check_is_at(dataset, dataset.facts().files.front());
    PlacedBytes front(0);
    file_.try_to(front.put(file_.number(), header_of(dataset).packed()));
    file_.try_to(front.flush(file_.number()));
    put_in_table();
  }

  bool is_full() const { return done_ == records_; }

  void append(std::span<const std::byte> note) {
    file_.try_to(notes_.put(file_.number(), note));
    ++done_;
    put_in_table();
  }

  void finish() {
    file_.try_to(table_.flush(file_.number()));
    file_.try_to(notes_.flush(file_.number()));
    file_.replace();
  }

 private:
  void put_in_table() {
    const std::uint64_t end = notes_.end();
    file_.try_to(table_.put(file_.number(), std::as_bytes(std::span(&end, 1))));
  }

  const std::uint64_t records_;
  FileBeside file_;
  PlacedBytes table_;
  PlacedBytes notes_;
  std::uint64_t done_ = 0;
};

NotesWriter::NotesWriter(const std::shared_ptr<const Dataset>& dataset) {
  add_parts(dataset, parts_);
  next_file();
}

NotesWriter::~NotesWriter() = default;

/// Finishes each file whose hints are complete, and begins the next one.
void NotesWriter::next_file() {
  while (file_ == nullptr || file_->is_full()) {
    if (file_ != nullptr) file_->finish();
    file_.reset();
    if (begun_ == parts_.size()) return;
    file_ = std::make_unique<File>(*parts_[begun_++]);
  }
}

void NotesWriter::append(std::span<const std::byte> note) {
  if (file_ == nullptr)
    throw Error(ErrorCode::invalid_argument, begun_ == parts_.size()
                                                 ? "there are more hints than records"
                                                 : "hints cannot be written after an error");
  if (note.size() > NotesHeader::most_note_bytes) note = {};
  try {
    file_->append(note);
    notes_ += note.empty() ? 0 : 1;
    bytes_ += note.size();
    next_file();
  } catch (...) {
    file_.reset();
    begun_ = parts_.size() + 1;
    throw;
  }
}

void NotesWriter::finish() {
  if (file_ != nullptr || begun_ != parts_.size())
    throw Error(ErrorCode::invalid_argument, "there are fewer hints than records");
}

std::uint64_t save_notes(const std::shared_ptr<const Dataset>& dataset, Runtime& runtime) {
  const std::shared_ptr<RecordNotes> noted = runtime.notes_of(dataset, 1);
  NotesWriter writer(dataset);
  std::vector<std::byte> note;
  for (std::uint64_t record = 0; record < dataset->size(); ++record) {
    noted->read(record, note);
    if (note.empty()) dataset->stored_note(record, note);
    writer.append(note);
  }
  writer.finish();
  return writer.notes();
}

}  // namespace millrace
