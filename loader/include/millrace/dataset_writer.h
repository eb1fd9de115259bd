// SPDX-License-Identifier: Apache-2.0
#pragma once

// Threads and lifetimes: a `DatasetWriter` is for one thread at a time. It copies what it is given.
// Other threads and processes may open the dataset meanwhile; they are told that it is incomplete.

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
  /// Replace an existing file by `finish()`. Until then the new one lies beside it, with
  /// ".replacement" behind its name (its shards, where a name is taken, with a number), and needs
  /// room of its own; one that was left there is removed. Whenever the process is killed, the old
  /// dataset or the new one is there, whole. Then the old one's shards are removed; readers that
  /// have it open keep it.
  bool overwrite = false;
  /// Go on behind the committed records of a writer that was interrupted, also of one that replaces
  /// another dataset; begin where there is no file yet. A dataset that is complete stays as it is.
  /// Not together with `overwrite`.
  bool resume = false;
  /// Records are committed to storage each time this many bytes have been appended. They are held
  /// in memory until then.
  std::size_t commit_bytes = std::size_t{32} << 20;
  /// What the records are made of, in words for a person. It is kept in the file; resuming with
  /// another text is refused, and the message has both. It should change whenever the records
  /// would.
  std::string source = {};
  /// Write so many files, which open as one dataset (see `DatasetWriter`). Each takes its share of
  /// `source_items` items.
  std::uint64_t shards = 0;
  /// How many items the source has; only for `shards`, which needs it.
  std::uint64_t source_items = 0;
  /// Write as many files as it takes so that none has more than this many bytes of records; a
  /// record that is larger has a file to itself. Not together with `shards`.
  std::uint64_t shard_bytes = 0;
  /// What is known of the fields' values, for `Dataset::field_specs`: `raw_transform` then takes
  /// the dataset without being told. The records must have these fields; their bytes are not
  /// compared.
  std::vector<FieldSpec> field_specs = {};
};

/// An item of the source that no record was made of.
struct LeftOutItem {
  /// Its number in the source, from 0.
  std::uint64_t item = 0;
  std::string reason = {};
};

/// Writes a dataset (see `open_dataset`) record by record. Until `finish()` has returned, every
/// reader refuses it as incomplete. What was committed stays in it when the process is killed, and
/// a writer with `resume` goes on from there; a power failure can undo the last commit, no more.
/// The LMDB map grows by itself. After an `io` error every later call throws the same one.
///
/// With `shards` or `shard_bytes` the records go to files beside `path`: for out.lmdb to
/// out-00000-of-00004.lmdb, or to out-00000.lmdb if their number is not known beforehand. The file
/// at `path` lists them and is what is opened; moved elsewhere they must stay together.
class DatasetWriter {
 public:
  /// Creates `path`, as a dataset that is incomplete and has no records yet, or takes up what is
  /// there (`resume`). Throws `Error`: `already_exists` if it exists and neither `overwrite` nor
  /// `resume` is set, or if another writer is at work on it; `io` if it cannot be created or locked
  /// (no file is left then) or if it would replace something other than a regular file.
  /// With `resume`: `invalid_argument` if another source, other shards or another version began it;
  /// `corrupt` if the dataset is missing or damaged.
  explicit DatasetWriter(const std::filesystem::path& path, WriterOptions options = {});
  /// Leaves the dataset incomplete unless `finish()` was called.
  ~DatasetWriter();
  DatasetWriter(DatasetWriter&&) noexcept;
  DatasetWriter& operator=(DatasetWriter&&) noexcept;

  /// Appends a record, made of the source's next item; its number is the count of those before it.
  /// The field names and their order must be the same for every record. Copies the bytes. Throws
  /// `Error`: `invalid_argument` for other fields, a record of 4 GiB or more, or a writer that has
  /// finished or was moved from; `io` if the disk is full.
  void append(std::span<const RecordField> fields);

  /// Passes over the source's next item, without a record. The reason is kept with the next commit.
  /// Throws as `append` does.
  void leave_out(std::string reason);

  /// Names of the classes that the "label" field counts, from 0, kept in the dataset's description.
  /// Names keep their bytes, UTF-8 or not. To be called before `finish()`; throws as `append`
  /// does.
  void set_classes(std::vector<std::string> names);

  /// Commits what is left, writes the description and syncs it to storage; the dataset is complete
  /// then, and takes the place of the one that it replaces. A second call does nothing.
  void finish();

  /// Where the records go until `finish()`: the path, or what lies beside it to replace it.
  std::filesystem::path path() const;
  /// Whether the dataset is finished; it may have been so when it was to be resumed.
  bool complete() const;
  /// Records appended so far. This and what follows include those of an interrupted writer.
  std::uint64_t size() const;
  /// Those of them that are committed to storage.
  std::uint64_t committed() const;
  /// Items of the source that were appended or left out so far: where to go on after `resume`.
  std::uint64_t items() const;
  /// The items left out so far, in order.
  std::vector<LeftOutItem> left_out() const;

 private:
  std::unique_ptr<class RecordWriter> impl_;
};

}  // namespace millrace
