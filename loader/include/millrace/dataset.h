// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>
#include <millrace/error.h>
#include <millrace/sample_spec.h>

// Datasets, their records, and how to open them.
//
// Threads: a `Dataset` is immutable; all its functions may be called by several threads at the same
// time. A `DatasetReader` is for one thread at a time. A thread that uses several records at the
// same time makes one reader for each of them.
//
// Lifetimes: a `Record` is a view, valid until its reader reads again or is destroyed. A reader
// keeps alive whatever it reads from (an open file, a map, other datasets), so it may outlive the
// last pointer to its dataset.

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

/// A view of one stored record. It owns nothing. It is valid until its reader reads again or is
/// destroyed.
class Record {
 public:
  Record(std::uint64_t index, std::span<const RecordField> fields,
         std::optional<std::uint64_t> checksum = std::nullopt)
      : index_(index), fields_(fields), checksum_(checksum) {}

  /// The record's number in its dataset, from 0.
  std::uint64_t index() const { return index_; }
  std::span<const RecordField> fields() const { return fields_; }
  /// Checksum of all its fields, if it was compared with the bytes during the read; else nullopt.
  std::optional<std::uint64_t> checksum() const { return checksum_; }
  /// The bytes of a field. Throws `Error` (`not_found`) if the record has no such field.
  std::span<const std::byte> operator[](std::string_view name) const;
  bool has(std::string_view name) const;
  /// The value of a field that holds one little-endian signed 64-bit integer, such as "label".
  /// Throws `Error` (`not_found`, or `corrupt` if the field has another size).
  std::int64_t integer(std::string_view name) const;
  /// A field as text, such as "path", valid as long as the record. Throws like `operator[]`.
  std::string_view text(std::string_view name) const;

 private:
  std::uint64_t index_;
  std::span<const RecordField> fields_;
  std::optional<std::uint64_t> checksum_;
};

/// Reads records for one thread. It owns reusable state: a cursor, a file handle, scratch memory.
/// Two threads must not use one reader at once.
class DatasetReader {
 public:
  virtual ~DatasetReader() = default;

  /// Returns a view of record `index` (< `Dataset::size()`), valid until the next call or until the
  /// reader is destroyed. Throws `Error`: `bad_record` if only this record is unreadable (the
  /// pipeline's `bad_records` policy then applies). Any other code ends a pipeline's run. After any
  /// error the reader can be used again.
  virtual Record read(std::uint64_t index) = 0;

  /// Returns ok, the default, if the operating system delivered all bytes of the record that `read`
  /// was last called for. Call it after the last use of a record: mapped bytes can be lost while
  /// they are in use, by an I/O error or because the file is truncated. Lost bytes read as zeros.
  /// If the status is bad, its reason names the file and the offset. A pipeline calls this for each
  /// sample, and treats a record with lost bytes as a bad record. If `read` threw `bad_record`,
  /// this status is bad if the system could not read the bytes, and ok if the record itself is
  /// wrong.
  virtual Status intact() const;

  /// Bytes of memory that this reader keeps from one read to the next, such as a buffer for a
  /// record; 0 by default. Bytes of maps do not count. A joined dataset closes some readers of its
  /// parts if they hold too much memory together.
  virtual std::size_t held_bytes() const { return 0; }
};

/// Information about a dataset, apart from its records. Unknown members are empty.
struct DatasetFacts {
  /// Name of its format, one of those that `OpenOptions::format` lists: "packed file".
  std::string format{};
  /// Reason why this format was recognised, as a clause for messages: "all of 16 records that were
  /// looked at hold JPEG images".
  std::string format_reason{};
  /// The files that it is read from, in the order of their records.
  std::vector<std::string> files{};
  /// Names of the records' fields, in their order.
  std::vector<std::string> fields{};
  /// Fingerprint of the checksums of all records in order (`fingerprint_with`). Packed files store
  /// it when they are written; opening does not recompute it from the records. The same records
  /// have the same fingerprint in one file or in several. Files of version 1 of the packed format
  /// have no value here, because that version used another fingerprint. If records have no stored
  /// checksums, the fingerprint covers less: for tars the members' names, lengths and header
  /// checksums, for folders and lists of images the paths and labels.
  std::optional<std::uint64_t> fingerprint{};
  /// The program that wrote it.
  std::string created_by{};
  /// Warnings, one sentence each, with the reason: for example that stored record hints
  /// (`Dataset::stored_hint`) are not used because they are damaged or belong to another dataset.
  std::vector<std::string> warnings{};
};

/// Adds a record's checksum to the fingerprint of the records before it. The fingerprint is
/// computed modulo 2^64. It is 0 without records. A record with checksum c changes it from f to f *
/// P + c, where P is a fixed odd constant. So appending a record needs only the value so far. The
/// fingerprint of a joined dataset can be computed from the fingerprints and sizes of its parts.
std::uint64_t fingerprint_with(std::uint64_t fingerprint, std::uint64_t checksum);

/// File, stored size and checksum of a record.
struct StoredRecord {
  std::string file{};
  /// Length of the whole record in bytes: checksum, lengths and fields. In a tar: headers and
  /// files.
  std::uint64_t bytes = 0;
  /// The stored checksum; it has not been compared with the record's bytes. 0 if none is stored.
  std::uint64_t checksum = 0;
};

/// Numbered immutable records, each of named byte fields.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// Number of records.
  virtual std::uint64_t size() const = 0;

  /// Makes a new reader for one thread. The reader keeps alive whatever it reads from.
  virtual std::unique_ptr<DatasetReader> make_reader() const = 0;

  /// Announces that these records will be read soon, so that the dataset can prefetch them. The
  /// default does nothing. A pipeline calls it on a separate thread, sometimes after reading of
  /// these records has begun. An exception does not end the run, but adds a warning to the report.
  virtual void prefetch(std::span<const std::uint64_t> indices) const;

  /// Name of record `index` for display, by which a person can find it. It need not be unique. For
  /// a packed photograph it is the original path, with "?" in place of control characters. For a
  /// damaged record it does not throw, but returns "record N". If it throws nevertheless, a
  /// pipeline uses "record N" too and adds a warning to the report.
  virtual std::string key(std::uint64_t index) const;

  /// The dataset's name for messages; the path if the dataset is a file.
  virtual std::string name() const = 0;

  /// Class names, indexed by the values of the field "label" from 0; empty if they are unknown.
  virtual std::vector<std::string> classes() const;

  /// Specifications of its records' fields, in their order: dtype, shape, and whether the outermost
  /// extent varies. For a varying extent `shape[0]` is its largest value, or 0 if unknown. Fields
  /// without known specification are left out. The default returns an empty list.
  virtual std::vector<FieldSpec> field_specs() const;

  /// Information about the dataset for people; empty by default.
  virtual DatasetFacts facts() const;
  /// File, stored size and checksum of record `index`; nullopt if it cannot be found. The default
  /// returns nullopt.
  virtual std::optional<StoredRecord> stored_record(std::uint64_t index) const;

  /// The datasets that this one joins, in their order; empty by default and for a dataset that
  /// joins none.
  virtual std::vector<std::shared_ptr<const Dataset>> parts() const;

  /// Whether record hints are stored for its records (`stored_hint`); false by default.
  virtual bool has_stored_hints() const;
  /// Copies the stored hint of record `index` into `hint`. A hint is data about a record, such as a
  /// JPEG's seek index. With it, samples of that record are made faster (`Sample::hint`). `millrace
  /// index` and `save_hints` store hints. A hint has not been checked: its user must check that it
  /// belongs to this record. `hint` is empty if no hint is stored or if it cannot be read. The
  /// default makes it empty.
  virtual void stored_hint(std::uint64_t index, std::vector<std::byte>& hint) const;
};

/// How to open a dataset.
struct OpenOptions {
  /// Compare each record's stored XXH3-64 checksum on every read. A mismatch is a `bad_record`.
  bool verify_checksums = true;
  /// Map the files into memory. If false, each reader uses `pread` into its own memory, which takes
  /// one file handle per file and one copy of each record. A reader of several files keeps at most
  /// 16 MiB of such memory, plus two records. If bytes cannot be read, `pread` fails, so the
  /// process needs no SIGBUS handler (see `open_dataset`). If the file system refuses shared maps,
  /// the files are mapped privately or read by `pread`; `DatasetFacts::warnings` then says so.
  bool map = true;
  /// Use record hints that are stored beside the files (`Dataset::stored_hint`). For packed
  /// datasets and other programs' LMDB files, hints are used only with `verify_checksums`. For
  /// tars, folders and lists they are used in any case.
  bool hints = true;
  /// Name of the dataset's format (`DatasetFacts::format`). Empty = detect the format by trying
  /// each in turn. The names are:
  /// - "packed file", "list of shards": millrace's own format;
  /// - LMDB files of other programs: "images" (encoded images), "ocr" (text recognition: images and
  ///   their texts), "caffe-datum" and "caffe2-tensors" (Caffe's messages), "tuples" (pickled or
  ///   MessagePack tuples, lists and dictionaries), and "databases" (images and labels in named
  ///   databases of one file);
  /// - "npy file" (one array) and "arrays" (a JSON description of several);
  /// - "tars" (WebDataset), "image folder" and "image list".
  std::string format{};
  /// For an LMDB file with several named databases ("databases"): name of the database that has the
  /// images, and name of the one that has the labels. Their entries are joined by key. Empty
  /// `images` = the file has one database. Empty `labels` = no further database has the labels.
  std::string images{};
  std::string labels{};
};

/// Opens a dataset of a format that millrace knows (`OpenOptions::format` names them). Two groups
/// of formats exist:
/// - Files that `millrace pack` and `DatasetWriter` write: one LMDB file, or a list of shards. The
///   shards are in the list's folder and are read as one dataset, in order.
/// - Files of other programs, read in place (loader/README.md): LMDB files, WebDataset tars,
///   folders and lists of images, numpy's files and descriptions of arrays. For tars, `path` may
///   also be a pattern ("cc3m-*.tar") or a text file with one tar or pattern per line.
/// Files are mapped read-only, without locks or lock file. A process maps each file once, even if
/// several calls open it. Image files of folders and lists are not mapped: each read opens and
/// closes its file. Files must not be changed while they are open.
///
/// A damaged file of millrace's own format must cause an `Error`, never a crash or bytes of another
/// record. Therefore these checks are made:
/// - This function checks that the file's length matches its newest meta page, and that each shard
///   is the one in the list. It checks each page on the paths to the description (JSON with format,
///   fields and fingerprint) and to the root page of the records. These are a few pages, whatever
///   the number of records.
/// - Each read checks every page that it follows to the record: type, number and bounds. It checks
///   that the leaf page has the record's key at the expected position, and that the value is inside
///   the file. It checks the lengths of the fields, and the checksum (`verify_checksums`).
/// - `millrace verify` checks all records: whether they decode, and whether they are those that
///   were written, in order (`fingerprint`). A page that points to a wrong, intact record of the
///   same length is found only by this check.
/// If bytes of a record cannot be read (I/O error, truncated file), it is a `bad_record` until the
/// file is opened again. The reason names the file and the offset. This also holds for bytes that
/// are lost while a sample is made from them (`DatasetReader::intact`).
///
/// To detect lost bytes, the process has a SIGBUS handler while files are mapped. The handler is
/// removed with the last map. It forwards every signal that does not concern the maps to the
/// handler that was installed before. A program may install its own SIGBUS handler while files are
/// mapped. It must then forward signals that it does not handle to millrace's handler.
///
/// Throws `Error`:
/// - `invalid_argument` for an unknown format, with the list of known ones;
/// - `not_found` for a missing file or shard;
/// - `corrupt` for a file that is not a dataset (the message says, for each format, what is
///   missing), is damaged or truncated, or has a newer format; also for a shard that is not the
///   listed one;
/// - `incomplete` for a dataset whose packing was interrupted or still runs;
/// - `io` for a file that cannot be opened, read or mapped.
std::shared_ptr<const Dataset> open_dataset(const std::filesystem::path& path,
                                            const OpenOptions& options = {});

}  // namespace millrace
