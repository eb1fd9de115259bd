// SPDX-License-Identifier: Apache-2.0
#include <lmdb.h>
#include <millrace/dataset_writer.h>
#include <millrace/error.h>

#include <utility>

#include "dataset/packed/dataset_lock.h"
#include "dataset/packed/file_writer.h"
#include "dataset/packed/lmdb_file.h"
#include "dataset/packed/shard_index.h"
#include "dataset/packed/shard_writer.h"

namespace millrace {
namespace {

void check(const WriterOptions& options) {
  const auto refuse = [](const char* what) { throw Error(ErrorCode::invalid_argument, what); };
  if (options.overwrite && options.resume)
    refuse("a dataset is either overwritten or resumed: set one of the two");
  if (options.shards > 0 && options.shard_bytes > 0)
    refuse("shards are cut by number or by bytes: set one of the two");
  if (options.shards > 0 && options.source_items == 0)
    refuse("a number of shards needs the number of items (source_items)");
  if (options.shards > max_shards) refuse("a dataset has at most 99999 shards");
}

/// `path`: the dataset's final path. `written`: its path while it is being written.
std::unique_ptr<RecordWriter> make_writer(const std::filesystem::path& path,
                                          const std::filesystem::path& written,
                                          WriterOptions options) {
  if (options.shards > 0 || options.shard_bytes > 0)
    return std::make_unique<ShardWriter>(path, written, std::move(options));
  if (options.resume && is_shard_index(written))
    throw Error(ErrorCode::invalid_argument, written.string() +
                                                 " cannot be resumed: it was begun in shards, and "
                                                 "this is to be one file; ask for the same shards");
  return std::make_unique<FileWriter>(written, std::move(options));
}

void finish(RecordWriter& writer) {
  writer.finish();
  if (!writer.replaced) return;
  replace_dataset(writer.path(), writer.replaced->path);
  writer.moved_to(writer.replaced->path);
  writer.replaced.reset();
}

std::unique_ptr<RecordWriter> make_writer(const std::filesystem::path& path,
                                          WriterOptions options) {
  check(options);
  int major = 0, minor = 0, patch = 0;
  mdb_version(&major, &minor, &patch);
  check_lmdb_version(path.string(), major, minor, patch);
  const std::filesystem::path beside = path.string() + ".replacement";
  bool replaces = options.resume && std::filesystem::exists(beside);
  // The lock is held to the end, so a second writer that replaces the same dataset fails.
  FileDescriptor old = options.overwrite || replaces ? lock_existing(path) : FileDescriptor();
  if (options.overwrite) {
    replaces = static_cast<bool>(old);
    remove_dataset(beside);
  }
  auto writer = make_writer(path, replaces ? beside : path, std::move(options));
  if (replaces) {
    writer->replaced = {path, std::move(old)};
    // The writer may have been interrupted just after it had finished.
    if (writer->complete()) finish(*writer);
  }
  return writer;
}

RecordWriter& not_moved_from(const std::unique_ptr<RecordWriter>& impl) {
  if (!impl)
    throw Error(ErrorCode::invalid_argument,
                "this DatasetWriter was moved from; use the one it was moved to");
  return *impl;
}

}  // namespace

DatasetWriter::DatasetWriter(const std::filesystem::path& path, WriterOptions options)
    : impl_(make_writer(path, std::move(options))) {}
DatasetWriter::~DatasetWriter() = default;
DatasetWriter::DatasetWriter(DatasetWriter&&) noexcept = default;
DatasetWriter& DatasetWriter::operator=(DatasetWriter&&) noexcept = default;

void DatasetWriter::append(std::span<const RecordField> fields) {
  not_moved_from(impl_).append(fields);
}
void DatasetWriter::leave_out(std::string reason) {
  not_moved_from(impl_).leave_out(std::move(reason));
}
void DatasetWriter::set_classes(std::vector<std::string> names) {
  not_moved_from(impl_).set_classes(std::move(names));
}
void DatasetWriter::finish() { millrace::finish(not_moved_from(impl_)); }
std::filesystem::path DatasetWriter::path() const { return not_moved_from(impl_).path(); }
bool DatasetWriter::complete() const { return impl_ && impl_->complete(); }
std::uint64_t DatasetWriter::size() const { return impl_ ? impl_->size() : 0; }
std::uint64_t DatasetWriter::committed() const { return impl_ ? impl_->committed() : 0; }
std::uint64_t DatasetWriter::items() const { return impl_ ? impl_->items() : 0; }
std::vector<LeftOutItem> DatasetWriter::left_out() const {
  return impl_ ? impl_->left_out() : std::vector<LeftOutItem>();
}

}  // namespace millrace
