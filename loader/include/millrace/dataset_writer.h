// SPDX-License-Identifier: Apache-2.0
#pragma once

// Threads and lifetimes: a `DatasetWriter` is for one thread at a time. It copies its arguments.
// Other threads and processes that open the dataset meanwhile get the error `incomplete`.

#include <millrace/dataset.h>
#include <millrace/detail/export.h>
#include <millrace/sample_spec.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace MILLRACE_API millrace {

struct WriterOptions {
  /// Replace an existing file when `finish()` is called. Until then the new file is beside it, has
  /// its name plus ".replacement", and needs its own disk space. (If the name of a new shard is
  /// taken, the shard gets another one: out-00000.1.lmdb.) An earlier ".replacement" file is
  /// removed. If the process is killed at any time, either the old dataset or the new one is
  /// complete. After the replacement the old shards are removed; readers that have them open can
  /// still read them.
  bool overwrite = false;
  /// Continue after the committed records of an interrupted writer, even if that writer was
  /// replacing another dataset (`overwrite`). Starts from the beginning if the file does not exist.
  /// A complete dataset is left as it is. Cannot be combined with `overwrite`.
  bool resume = false;
  /// Bytes of records between two commits to storage. Records are held in memory until they are
  /// committed.
  std::size_t commit_bytes = std::size_t{32} << 20;
  /// Description of the records' source, a text for people. It is stored in the file. Resuming with
  /// another text is refused, and the message shows both texts. So give each source of records its
  /// own text.
  std::string source = {};
  /// Number of files to write, which open as one dataset (see `DatasetWriter`). The `source_items`
  /// items are divided evenly among the files. 0 = one file, or as many as `shard_bytes` requires.
  std::uint64_t shards = 0;
  /// Number of items in the source. Required with `shards`, otherwise unused.
  std::uint64_t source_items = 0;
  /// Maximal bytes of records in a file. When a file is full, the next one begins. A larger record
  /// gets a file of its own. Cannot be combined with `shards`. 0 = no limit.
  std::uint64_t shard_bytes = 0;
  /// Specifications of the fields' values, for `Dataset::field_specs`; `raw_transform` then needs
  /// no further settings. The records must have these fields. The bytes of the fields are not
  /// compared with dtype and shape.
  std::vector<FieldSpec> field_specs = {};
};

/// An item of the source for which no record was written.
struct LeftOutItem {
  /// Its number in the source, from 0.
  std::uint64_t item = 0;
  std::string reason = {};
};

/// Writes a dataset (see `open_dataset`) record by record. Until `finish()` has returned, every
/// reader refuses the dataset as incomplete. Committed records survive a killed process, and a
/// writer with `resume` continues after them. A power failure can undo the last commit, but no
/// earlier one. The LMDB map grows automatically. After an `io` error every later call throws the
/// same error.
///
/// With `shards` or `shard_bytes` the records are written to files beside `path`. For out.lmdb
/// these are out-00000-of-00004.lmdb and so on, or out-00000.lmdb if their number is not known
/// beforehand. The file at `path` lists them; pass it to `open_dataset`. Move these files only
/// together.
class DatasetWriter {
 public:
  /// Creates `path` as an incomplete dataset without records, or continues the existing one
  /// (`resume`). Throws `Error`: `already_exists` if it exists and neither `overwrite` nor `resume`
  /// is set, or if another writer is using it; `io` if it cannot be created or locked (no file is
  /// left then) or if it would replace something other than a regular file. With `resume`:
  /// `invalid_argument` if it was begun with another source, other shards or another version;
  /// `corrupt` if the existing file is damaged or is not a dataset.
  explicit DatasetWriter(const std::filesystem::path& path, WriterOptions options = {});
  /// Leaves the dataset incomplete unless `finish()` was called.
  ~DatasetWriter();
  DatasetWriter(DatasetWriter&&) noexcept;
  DatasetWriter& operator=(DatasetWriter&&) noexcept;

  /// Appends a record that is made from the source's next item. Its number is the count of records
  /// before it. All records must have the same field names in the same order. Copies the bytes.
  /// Throws `Error`: `invalid_argument` for other fields, a record of 4 GiB or more, or a writer
  /// that has finished or was moved from; `io` if the disk is full.
  void append(std::span<const RecordField> fields);

  /// Skips the source's next item without writing a record. The reason is stored with the next
  /// commit. Throws like `append`.
  void leave_out(std::string reason);

  /// Sets the class names, indexed by the values of the "label" field from 0. They are stored in
  /// the dataset's description. Names keep their bytes, UTF-8 or not. Call it before `finish()`.
  /// Throws like `append`.
  void set_classes(std::vector<std::string> names);

  /// Commits the remaining records, writes the description and syncs it to storage. The dataset is
  /// then complete and has replaced the earlier one (`overwrite`). A second call does nothing.
  void finish();

  /// File that receives the records until `finish()`: the path itself, or the replacement beside
  /// it. After `finish()`, the path itself.
  std::filesystem::path path() const;
  /// Whether the dataset is finished; also true if a dataset to be resumed was complete already.
  bool complete() const;
  /// Number of records appended so far. This and the following counts include those of an
  /// interrupted writer.
  std::uint64_t size() const;
  /// Number of appended records that are committed to storage.
  std::uint64_t committed() const;
  /// Number of the source's items that were appended or left out so far: the item to continue with
  /// after `resume`.
  std::uint64_t items() const;
  /// The items left out so far, in order.
  std::vector<LeftOutItem> left_out() const;

 private:
  std::unique_ptr<class RecordWriter> impl_;
};

}  // namespace millrace
