// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace MILLRACE_API millrace {

/// One named byte field of a record, as stored.
struct RecordField {
  std::string_view name;
  std::span<const std::byte> bytes;
};

/// A view of one stored record. It owns nothing: it is valid until the `ReadBuffer` it was read
/// into is used again, and no longer than the dataset.
class Record {
 public:
  Record(std::uint64_t index, std::span<const RecordField> fields)
      : index_(index), fields_(fields) {}

  /// The record's number in its dataset, from 0.
  std::uint64_t index() const { return index_; }
  std::span<const RecordField> fields() const { return fields_; }
  /// The bytes of a field. Throws `Error` (`not_found`) when the record has no such field.
  std::span<const std::byte> operator[](std::string_view name) const;
  bool has(std::string_view name) const;
  /// A field that holds one little-endian signed 64-bit integer, such as "label". Throws `Error`
  /// (`not_found`, `corrupt` where the field has another size).
  std::int64_t integer(std::string_view name) const;
  /// A field as text, such as "path".
  std::string_view text(std::string_view name) const;

 private:
  std::uint64_t index_;
  std::span<const RecordField> fields_;
};

/// One thread's place to read records into, used again and again. A dataset that is mapped leaves
/// `bytes` empty and lets the fields point into the map; others fill `bytes`. Not for two threads
/// at once.
struct ReadBuffer {
  std::vector<std::byte> bytes;
  std::vector<RecordField> fields;
  /// What the dataset keeps for this thread (a cursor, a file handle); made by its first `read`,
  /// replaced when the buffer is used with another dataset.
  std::shared_ptr<void> reader;
  /// What made `reader`: an object that `reader` itself keeps alive, so that its address stays its
  /// own.
  const void* reader_owner = nullptr;
};

/// What a dataset knows of itself beside its records; empty where it does not.
struct DatasetFacts {
  /// The files that it is read from, in the order of their records.
  std::vector<std::string> files{};
  /// Names of the records' fields, in their order.
  std::vector<std::string> fields{};
  /// Of the checksums of all records in their order, as they were when they were written
  /// (`fingerprint_with`): the same for the same records in one file or several. None of a file of
  /// dataset format 1, which had another.
  std::optional<std::uint64_t> fingerprint{};
  /// The program that wrote it.
  std::string created_by{};
};

/// The fingerprint of some records and one more, a polynomial over the ring of 64-bit numbers: it
/// is 0 without records, and each record's checksum c makes f * P + c of it. So it goes on from its
/// value alone, and that of parts follows from theirs.
std::uint64_t fingerprint_with(std::uint64_t fingerprint, std::uint64_t checksum);

/// How a record lies in storage.
struct StoredRecord {
  std::string file{};
  /// All of it: checksum, lengths and fields.
  std::uint64_t bytes = 0;
  /// As stored, not compared.
  std::uint64_t checksum = 0;
};

/// Numbered immutable records, each of named byte fields. All methods may be called from any thread
/// at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// How many records there are.
  virtual std::uint64_t size() const = 0;

  /// A view of record `index` (< `size()`), valid until the next use of `buffer`. Throws `Error`:
  /// `bad_record` when this record alone is unreadable (the pipeline's `bad_records` policy then
  /// applies), any other code when reading cannot go on.
  virtual Record read(std::uint64_t index, ReadBuffer& buffer) const = 0;

  /// A hint that these records are read soon. Does nothing by default; must not block on storage.
  virtual void prefetch(std::span<const std::uint64_t> indices) const;

  /// A name for a record that a person can find it by (for packed photographs the original path,
  /// with control characters as "?"). Never throws for a damaged record: falls back to "record N".
  virtual std::string key(std::uint64_t index) const;

  /// The dataset's name for messages: its path, for one that is a file.
  virtual std::string name() const = 0;

  /// Names of the classes that the field "label" counts, from 0; empty where there are none.
  virtual std::vector<std::string> classes() const;

  /// For those who look at files; empty by default.
  virtual DatasetFacts facts() const;
  /// How record `index` is stored; nothing where it cannot be found, and by default.
  virtual std::optional<StoredRecord> stored(std::uint64_t index) const;
};

/// How to open a packed dataset.
struct OpenOptions {
  /// Compare each record's stored XXH3-64 checksum on every read; a difference is a `bad_record`.
  bool verify_checksums = true;
};

/// Opens a dataset that `millrace pack` or `DatasetWriter` wrote: one LMDB file, or the list of its
/// shards, which lie beside it and are read as one, in order. Files are mapped read-only, once per
/// process however often this is called, without locks or lock file. What is checked, so that a
/// damaged file ends in an `Error` and never in a crash or in another record's bytes:
/// - here, that the file is as long as its newest state says, and each page that leads to the
/// description and to the root of the
///   records: a few pages, however many records there are; that a shard is the one that is listed;
/// - by each `read`, each page from the root to that record (kind, number, bounds, and that the
/// keys below are those that the page
///   above says), that the value lies in the file, its fields' lengths, and its checksum
///   (`verify_checksums`);
/// - by `millrace verify`, all records, whether they decode, and that they are, in order, those
/// that were written (`fingerprint`).
///   That alone finds a damaged pointer which leads to another sound record of just the same
///   length.
/// Files must not be changed while they are open. One that is made shorter then ends the process
/// (SIGBUS), as with any map. Throws `Error`: `not_found`, also for a shard; `corrupt` for a file
/// that is no dataset, is damaged, is shorter than its own last page, or has a newer format, and
/// for a shard that is not the one listed; `incomplete` for one whose packing was interrupted or
/// still goes on.
std::shared_ptr<const Dataset> open_dataset(const std::filesystem::path& path,
                                            OpenOptions options = {});

}  // namespace millrace
