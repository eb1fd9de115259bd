// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>

#include <stdexcept>
#include <utility>

#include "base/read_ahead.h"
#include "dataset/stored_hints.h"

namespace millrace {

/// A dataset in files, with the hints that are stored beside them.
class StoredDataset : public Dataset, public std::enable_shared_from_this<StoredDataset> {
 public:
  bool has_stored_hints() const final { return hints_ != nullptr; }
  void stored_hint(std::uint64_t index, std::vector<std::byte>& hint) const final {
    hints_ != nullptr ? hints_->read(index, hint) : hint.clear();
  }

 protected:
  /// Returns the byte ranges of the records that exist and that `cursor.locate` finds.
  template <typename Cursor>
  std::vector<FileRange> locate_all(std::span<const std::uint64_t> indices, Cursor&& cursor) const {
    std::vector<FileRange> ranges;
    ranges.reserve(indices.size());
    for (const std::uint64_t index : indices) try {
        if (index < size()) ranges.push_back(cursor.locate(index));
      } catch (const std::runtime_error&) {
        // Ignored here: reading the record reports this error.
      }
    return ranges;
  }

  /// Null if no hints are used.
  std::unique_ptr<const StoredHints> hints_;
};

/// Reader of a format that only makes records. The errors of bad records come from here.
class RecordReader : public DatasetReader {
 public:
  Record read(std::uint64_t index) final;

 protected:
  /// `bad_clause` follows the record's name in an error: " cannot be read". It is left out if the
  /// system cannot read the bytes, since the reason then says so.
  RecordReader(std::shared_ptr<const Dataset> dataset, const char* bad_clause)
      : dataset_(std::move(dataset)), bad_clause_(bad_clause) {}

  /// Makes record `index` (< `Dataset::size()`). `intact` then concerns its bytes. Returns the
  /// reason if the record is bad. Throws `Error` if the system cannot read its bytes.
  virtual Status make(std::uint64_t index, Record& record) = 0;

  /// The error that `make` threw for the last record.
  Status unreadable_ = Status::ok();

 private:
  const std::shared_ptr<const Dataset> dataset_;
  const char* const bad_clause_;
};

}  // namespace millrace
