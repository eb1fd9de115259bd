// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/stored_hints.h>
#include <millrace/error.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "dataset/packed/atomic_file_writer.h"
#include "dataset/stored_hints.h"

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

HintsHeader header_of(const Dataset& dataset) {
  return {.records = dataset.size(), .fingerprint = dataset.facts().fingerprint.value_or(0)};
}

/// Throws `Error` (`invalid_argument`) unless the file still has exactly the records of `dataset`.
/// It may have been replaced since, or `dataset` may be only a part of it.
void check_is_at(const Dataset& dataset, const std::string& file) {
  // Without a fingerprint the records cannot be compared. Each hint still identifies the bytes that
  // it belongs to.
  if (!dataset.facts().fingerprint) return;
  const auto there = open_dataset(file, {.map = false, .hints = false});
  const HintsHeader expected = header_of(dataset);
  const HintsHeader found = header_of(*there);
  if (found.records != expected.records || found.fingerprint != expected.fingerprint)
    throw Error(ErrorCode::invalid_argument,
                file + " has other records than the dataset that the hints belong to");
}

}  // namespace

/// The hints of one file's records.
class HintsWriter::File {
 public:
  explicit File(const Dataset& dataset)
      : records_(dataset.size()),
        file_(stored_hints_path(dataset.facts().files.front()), is_hints_file,
              "a file of record hints"),
        table_(HintsHeader::bytes),
        hints_(header_of(dataset).end_of_table()) {
    check_is_at(dataset, dataset.facts().files.front());
    std::vector<std::string> unusable;
    stored_ = StoredHints::open(dataset.facts().files.front(), header_of(dataset), false, unusable);
    PlacedBytes front(0);
    file_.try_to(front.put(file_.number(), header_of(dataset).packed()));
    file_.try_to(front.flush(file_.number()));
    put_in_table();
  }

  bool is_full() const { return done_ == records_; }

  /// Reads the hint that is stored for the next record.
  void read_stored(std::vector<std::byte>& hint) const {
    hint.clear();
    if (stored_ != nullptr) stored_->read(done_, hint);
  }

  void append(std::span<const std::byte> hint) {
    file_.try_to(hints_.put(file_.number(), hint));
    ++done_;
    put_in_table();
  }

  void finish() {
    file_.try_to(table_.flush(file_.number()));
    file_.try_to(hints_.flush(file_.number()));
    file_.replace();
  }

 private:
  void put_in_table() {
    const std::uint64_t end = hints_.end();
    file_.try_to(table_.put(file_.number(), std::as_bytes(std::span(&end, 1))));
  }

  const std::uint64_t records_;
  AtomicFileWriter file_;
  /// The hints that the new ones replace; null without such hints.
  std::unique_ptr<const StoredHints> stored_;
  PlacedBytes table_;
  PlacedBytes hints_;
  std::uint64_t done_ = 0;
};

HintsWriter::HintsWriter(const std::shared_ptr<const Dataset>& dataset) {
  add_parts(dataset, parts_);
  next_file();
}

HintsWriter::~HintsWriter() = default;

/// Finishes the current file if its hints are complete, and begins the next file.
void HintsWriter::next_file() {
  while (file_ == nullptr || file_->is_full()) {
    if (file_ != nullptr) file_->finish();
    file_.reset();
    if (begun_ == parts_.size()) return;
    file_ = std::make_unique<File>(*parts_[begun_++]);
  }
}

void HintsWriter::append(std::span<const std::byte> hint) {
  if (file_ == nullptr)
    throw Error(ErrorCode::invalid_argument, begun_ == parts_.size()
                                                 ? "there are more hints than records"
                                                 : "hints cannot be written after an error");
  if (hint.size() > HintsHeader::max_hint_bytes) hint = {};
  try {
    file_->append(hint);
    hints_ += hint.empty() ? 0 : 1;
    bytes_ += hint.size();
    next_file();
  } catch (...) {
    file_.reset();
    begun_ = parts_.size() + 1;
    throw;
  }
}

void HintsWriter::append_stored() {
  if (file_ != nullptr) file_->read_stored(stored_);
  append(stored_);
}

void HintsWriter::finish() {
  if (file_ != nullptr || begun_ != parts_.size())
    throw Error(ErrorCode::invalid_argument, "there are fewer hints than records");
}

}  // namespace millrace
