// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>
#include <millrace/error.h>
#include <millrace/sample_spec.h>

// Threads: a `Dataset` does not change; all its functions may be called from any thread at once. A
// `DatasetReader` is for one thread at a time, and each thread makes its own: one for each record
// that it uses at a time.
//
// Lifetimes: a `Record` is a view that is valid until its reader reads again or goes. A reader
// keeps alive what it reads from (an open file, a map, other datasets), so it may outlive the last
// pointer to its dataset.

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

/// A view of one stored record. It owns nothing: it is valid until the reader that gave it reads
/// again or goes.
class Record {
 public:
  Record(std::uint64_t index, std::span<const RecordField> fields,
         std::optional<std::uint64_t> checksum = std::nullopt)
      : index_(index), fields_(fields), checksum_(checksum) {}

  /// The record's number in its dataset, from 0.
  std::uint64_t index() const { return index_; }
  std::span<const RecordField> fields() const { return fields_; }
  /// A checksum of all its fields that was compared with the bytes as they were read; nullopt if
  /// nobody did.
  std::optional<std::uint64_t> checksum() const { return checksum_; }
  /// The bytes of a field. Throws `Error` (`not_found`) if the record has no such field.
  std::span<const std::byte> operator[](std::string_view name) const;
  bool has(std::string_view name) const;
  /// The value of a field that holds one little-endian signed 64-bit integer, such as "label".
  /// Throws `Error` (`not_found`, or `corrupt` if the field has another size).
  std::int64_t integer(std::string_view name) const;
  /// A field as text, such as "path", valid as long as the record. Throws as `operator[]`.
  std::string_view text(std::string_view name) const;

 private:
  std::uint64_t index_;
  std::span<const RecordField> fields_;
  std::optional<std::uint64_t> checksum_;
};

/// One thread's place to read a dataset's records (a cursor, a file handle, scratch memory), used
/// again and again. Not for two threads at once.
class DatasetReader {
 public:
  virtual ~DatasetReader() = default;

  /// A view of record `index` (< `Dataset::size()`), valid until the next call or the reader's end.
  /// Throws `Error`: `bad_record` if this record alone is unreadable (the pipeline's `bad_records`
  /// policy then applies), any other code if reading cannot go on. After an error the reader can be
  /// used as before.
  virtual Record read(std::uint64_t index) = 0;

  /// Whether the record that `read` gave last is still what it was. Bytes of a map can be lost
  /// while they are used, by an I/O error or because the file is made shorter; they are zeros then.
  /// Who has made something of a record asks this afterwards: a pipeline does, and a record that
  /// was lost is a bad one. The reason names the file and the offset in it. Of a read that threw
  /// `bad_record` it says whether the system could not give the bytes, or, if it is ok, the record
  /// itself is at fault. Ok by default.
  virtual Status intact() const;
};

/// What a dataset knows of itself beside its records; what it does not know is empty.
struct DatasetFacts {
  /// The name of its format, as `OpenOptions::format` takes it: "packed file".
  std::string format{};
  /// What it was taken for this format by, a clause for people: "all of 16 records that were looked
  /// at hold JPEG images".
  std::string format_reason{};
  /// The files that it is read from, in the order of their records.
  std::vector<std::string> files{};
  /// Names of the records' fields, in their order.
  std::vector<std::string> fields{};
  /// The fingerprint of the checksums of all records in order, as they were written
  /// (`fingerprint_with`): it is the same for the same records in one file or several. A file of
  /// dataset format 1 has none, since its fingerprint was another one. Where records have no stored
  /// checksum it covers less: of tars the members' names, lengths and header checksums, of folders
  /// and lists of images the paths and labels.
  std::optional<std::uint64_t> fingerprint{};
  /// The program that wrote it.
  std::string created_by{};
  /// What of it is not used, and why, a sentence each: notes that are damaged or another dataset's.
  std::vector<std::string> warnings{};
};

/// The fingerprint of some records and one more, a polynomial over the ring of 64-bit numbers: it
/// is 0 without records, and a record with checksum c makes f * P + c of f. So it goes on from its
/// value alone, and the fingerprint of a whole follows from those of its parts.
std::uint64_t fingerprint_with(std::uint64_t fingerprint, std::uint64_t checksum);

/// How a record lies in storage.
struct StoredRecord {
  std::string file{};
  /// The length of all of it: checksum, lengths and fields; headers and files in a tar.
  std::uint64_t bytes = 0;
  /// The checksum that is stored with it; nobody has compared it. 0 where none is stored.
  std::uint64_t checksum = 0;
};

/// Numbered immutable records, each of named byte fields.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// How many records there are.
  virtual std::uint64_t size() const = 0;

  /// A new reader for one thread. It keeps alive what it reads from.
  virtual std::unique_ptr<DatasetReader> make_reader() const = 0;

  /// A hint that these records are read soon. Does nothing by default. A pipeline calls it on a
  /// thread of its own, at times only after it has begun to read them. An exception does not end
  /// the run: the report has a warning.
  virtual void prefetch(std::span<const std::uint64_t> indices) const;

  /// A name for a record that a person can find it by: for a packed photograph the original path,
  /// with "?" for control characters. It never throws for a damaged record, but falls back to
  /// "record N". A pipeline does the same if it throws, and warns in the report.
  virtual std::string key(std::uint64_t index) const;

  /// The dataset's name for messages: its path if it is a file.
  virtual std::string name() const = 0;

  /// Names of the classes that the field "label" counts, from 0; empty if there are none.
  virtual std::vector<std::string> classes() const;

  /// What is known of its records' fields, in their order: dtype, shape, and whether the outermost
  /// extent varies, whose largest value is then `shape[0]`, or 0 if nobody has said it. Fields of
  /// which nothing is known are left out; none are known by default.
  virtual std::vector<FieldSpec> field_specs() const;

  /// What is known for those who look at files; empty by default.
  virtual DatasetFacts facts() const;
  /// How record `index` is stored; nullopt if it cannot be found, and by default.
  virtual std::optional<StoredRecord> stored(std::uint64_t index) const;

  /// The datasets whose records it has, in their order; empty if it is made of none, and by
  /// default.
  virtual std::vector<std::shared_ptr<const Dataset>> parts() const;

  /// Whether notes of its records are stored (`stored_note`); false by default.
  virtual bool has_stored_notes() const;
  /// Copies what is stored of record `index` to make samples of it sooner (`Sample::note`), as
  /// `millrace index` does. Nobody has checked it: who uses it must find out whether it is of this
  /// record. Empty if there is none or it cannot be read, and by default.
  virtual void stored_note(std::uint64_t index, std::vector<std::byte>& note) const;
};

/// How to open a dataset.
struct OpenOptions {
  /// Compare each record's stored XXH3-64 checksum on every read; a difference is a `bad_record`.
  bool verify_checksums = true;
  /// Map the files. If false, each reader reads them call by call (`pread`) into memory of its own,
  /// which takes a file handle for each file and a copy of each record. What cannot be read is an
  /// error of that call then, so that the process needs no handler of SIGBUS (see `open_dataset`).
  /// Where the file system refuses shared maps the files are mapped privately, or else read call by
  /// call; `DatasetFacts::warnings` says so.
  bool map = true;
  /// Use the notes that are stored beside the files (`millrace index`), if there are any. In packed
  /// datasets and other programs' LMDB files they are used only with `verify_checksums`; notes of
  /// tars, folders and lists are used without it, too, since these have no stored checksums.
  bool notes = true;
  /// The name of the format that it has (`DatasetFacts::format`): "npy file", "arrays", "list of
  /// shards", "packed file", "databases", "ocr", "images", "caffe-datum", "caffe2-tensors",
  /// "tuples", "tars", "image folder" or "image list". Empty = ask each format in turn.
  std::string format{};
  /// Of an LMDB file with several named databases, the one with the images and the one with their
  /// labels, which are joined by key. Empty = the file has one database.
  std::string images{};
  std::string labels{};
};

/// Opens a dataset of a format that millrace knows (`OpenOptions::format` names them): what
/// `millrace pack` and `DatasetWriter` write, one LMDB file, or the list of its shards, which lie
/// beside it and are read as one, in order; and what others write, which is read where it lies
/// (loader/README.md): LMDB files, WebDataset tars, folders and lists of images, numpy's files and
/// descriptions of arrays. For tars `path` may also be a pattern ("cc3m-*.tar") or a text file that
/// names them. Files are mapped read-only, once per process however often this is called, without
/// locks or lock file; images of folders and lists are opened for each read instead. So that a
/// damaged file of ours ends in an `Error` and never in a crash or in another record's bytes, this
/// is checked:
/// - here, that the file is as long as its newest state says, that a shard is the one that is
///   listed, and each page that leads to the description and to the root of the records: a few
///   pages, however many records there are;
/// - by each read, each page from the root to that record (kind, number, bounds, and that the keys
///   below are those that the page above says), that the value lies in the file, its fields'
///   lengths, and its checksum (`verify_checksums`);
/// - by `millrace verify`, all records, whether they decode, and that they are, in order, those
///   that were written (`fingerprint`). That alone finds a damaged pointer which leads to another
///   sound record of just the same length.
/// Files must not be changed while they are open. A record whose bytes cannot be read, by an I/O
/// error or because the file was made shorter, is a `bad_record`, whose reason names file and
/// offset, also when it was being made into a sample (`DatasetReader::intact`), until the file is
/// opened anew. For this the process has a handler of SIGBUS while files are mapped: it goes with
/// the last of them, and passes all that is not about them on to the handler that was there before.
/// A program that installs one meanwhile passes on to ours what is not its own. Throws `Error`:
/// `invalid_argument` for a format that there is not, with the names of those that there are;
/// `not_found`, also for a shard; `corrupt` for what is no dataset (the message says what each
/// format misses), for a file that is damaged, is shorter than its own last page or has a newer
/// format, and for a shard that is not the one listed; `incomplete` for a dataset whose packing was
/// interrupted or still goes on; `io`.
std::shared_ptr<const Dataset> open_dataset(const std::filesystem::path& path,
                                            const OpenOptions& options = {});

}  // namespace millrace
