// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// One named byte field of a record, as stored.
struct RecordField {
  std::string_view name;
  std::span<const std::byte> bytes;
};

/// A view of one stored record. It owns nothing: it is valid until the `ReadBuffer` it was read into is used again, and
/// no longer than the dataset.
class Record {
 public:
  Record(std::uint64_t index, std::span<const RecordField> fields) : index_(index), fields_(fields) {}

  /// The record's number in its dataset, from 0.
  std::uint64_t index() const { return index_; }
  std::span<const RecordField> fields() const { return fields_; }
  /// The bytes of a field. Throws `Error` (`not_found`) when the record has no such field.
  std::span<const std::byte> operator[](std::string_view name) const;
  bool has(std::string_view name) const;
  /// A field that holds one little-endian signed 64-bit integer, such as "label". Throws `Error` (`not_found`,
  /// `corrupt` where the field has another size).
  std::int64_t integer(std::string_view name) const;
  /// A field as text, such as "path".
  std::string_view text(std::string_view name) const;

 private:
  std::uint64_t index_;
  std::span<const RecordField> fields_;
};

/// One thread's place to read records into, used again and again. A dataset that is mapped leaves `bytes` empty and lets the
/// fields point into the map; others fill `bytes`. Not for two threads at once.
struct ReadBuffer {
  std::vector<std::byte> bytes;
  std::vector<RecordField> fields;
  /// What the dataset keeps for this thread (a cursor, a file handle); made by its first `read`, replaced when the
  /// buffer is used with another dataset.
  std::shared_ptr<void> reader;
  /// What made `reader`: an object that `reader` itself keeps alive, so that its address stays its own.
  const void* reader_owner = nullptr;
};

/// Numbered immutable records, each of named byte fields. All methods may be called from any thread at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// How many records there are.
  virtual std::uint64_t size() const = 0;

  /// A view of record `index` (< `size()`), valid until the next use of `buffer`. Throws `Error`: `bad_record` when this
  /// record alone is unreadable (the pipeline's `bad_records` policy then applies), any other code when reading
  /// cannot go on.
  virtual Record read(std::uint64_t index, ReadBuffer& buffer) const = 0;

  /// A hint that these records are read soon. Does nothing by default; must not block on storage.
  virtual void prefetch(std::span<const std::uint64_t> indices) const;

  /// A name for a record that a person can find it by (for packed photographs the original path). Never throws for a damaged
  /// record: falls back to "record N".
  virtual std::string key(std::uint64_t index) const;

  /// The dataset's name for messages: its path, for one that is a file.
  virtual std::string name() const = 0;

  /// Names of the classes that the field "label" counts, from 0; empty where there are none.
  virtual std::vector<std::string> classes() const;
};

/// How to open a packed dataset.
struct OpenOptions {
  /// Compare each record's stored XXH3-64 checksum on every read; a difference is a `bad_record`.
  bool verify_checksums = true;
};

/// Opens a dataset file that `millrace pack` or `DatasetWriter` wrote (one LMDB file). The file is mapped read-only, opened once
/// per process however often this is called, without locks or lock file; it must not be changed in place while it is open.
/// Throws `Error`: `not_found`; `corrupt` for a file that is no dataset, is damaged, is shorter than its own last page, or has a
/// newer format; `incomplete` for one whose packing was interrupted or still goes on.
std::shared_ptr<const Dataset> open_dataset(const std::filesystem::path& path, OpenOptions options = {});

}  // namespace millrace
