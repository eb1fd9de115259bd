// SPDX-License-Identifier: Apache-2.0
#include "dataset/packed/shard_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "dataset/packed/dataset_lock.h"

namespace millrace {

std::uint64_t shard_of(std::uint64_t item, std::uint64_t shards, std::uint64_t items) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(Wide{item} * shards / items);
}

ShardWriter::ShardWriter(std::filesystem::path path, std::filesystem::path written,
                         WriterOptions options)
    : RecordWriter(std::move(written), std::move(options)),
      named_(std::move(path)),
      beside_others_(options_.overwrite || path_ != named_) {
  index_.plan = options_.shards > 0
                    ? std::to_string(options_.shards) + " shards"
                    : "shards of up to " + std::to_string(options_.shard_bytes) + " bytes";
  index_.source = options_.source;
  index_.created_by = this_version();
  if (options_.resume && std::filesystem::exists(path_)) {
    // If the index is a symbolic link, the shards are in the folder of its target.
    const std::filesystem::path at = std::filesystem::canonical(path_);
    if (named_ == path_) named_ = at;
    path_ = at;
    lock_ = lock_existing(path_);
  }
  if (lock_ && std::filesystem::file_size(path_) > 0)
    take_up();
  else
    begin();
}

void ShardWriter::begin() {
  if (!beside_others_) check_no_shards();
  if (!lock_) lock_ = create_locked(path_);
  try {
    open_next_shard();
  } catch (...) {
    unlink(path_.c_str());
    throw;
  }
}

void ShardWriter::take_up() {
  if (!is_shard_index(path_))
    throw Error(
        ErrorCode::invalid_argument,
        path_.string() + " cannot be resumed: it is one file, and this is to be " + index_.plan);
  const ShardIndex found = read_shard_index(path_);
  check_same_pack(path_, {found.created_by, found.source}, {index_.created_by, index_.source});
  check_same_pack(path_, {found.created_by, found.plan}, {index_.created_by, index_.plan});
  index_.classes = found.classes;
  for (const ShardEntry& shard : found.shards) {
    const std::shared_ptr<const DatasetFile> there = open_listed_shard(path_, shard);
    if (!found.complete) there->check();
    count(there->description());
    index_.add(shard);
  }
  index_.complete = found.complete;
  if (index_.complete)
    lock_ = FileDescriptor();
  else if (!found.begun.empty()) {
    open_shard(found.begun);
    // The shard may have been finished just before the writer was interrupted.
    if (file_->complete()) DatasetFile::open(file_->path())->check();
  }
}

std::string ShardWriter::shard_name(std::uint64_t number, const std::string& copy) const {
  char digits[40];
  if (options_.shards > 0)
    std::snprintf(digits, sizeof digits, "-%05llu-of-%05llu",
                  static_cast<unsigned long long>(number),
                  static_cast<unsigned long long>(options_.shards));
  else
    std::snprintf(digits, sizeof digits, "-%05llu", static_cast<unsigned long long>(number));
  return named_.stem().string() + digits + copy + named_.extension().string();
}

std::string ShardWriter::free_name(std::uint64_t number) const {
  std::string name = shard_name(number);
  const auto is_taken = [&] {
    return std::filesystem::exists(std::filesystem::symlink_status(shard_path(path_, name)));
  };
  for (unsigned copy = 1; beside_others_ && is_taken(); ++copy)
    name = shard_name(number, "." + std::to_string(copy));
  return name;
}

void ShardWriter::check_no_shards() const {
  for (std::uint64_t number = 0; number < std::max<std::uint64_t>(options_.shards, 1); ++number) {
    const std::filesystem::path shard = shard_path(path_, shard_name(number));
    if (std::filesystem::exists(std::filesystem::symlink_status(shard)))
      throw Error(ErrorCode::already_exists,
                  shard.string() + " exists already; take another name, or have it replaced");
  }
}

void ShardWriter::open_shard(std::string name) {
  const std::uint64_t number = index_.shards.size();
  if (number >= max_shards)
    throw Error(ErrorCode::invalid_argument,
                path_.string() + " would have more than 99999 shards; let them have more bytes");
  index_.begun = std::move(name);
  write_index();
  WriterOptions options;
  options.resume = options_.resume;
  options.commit_bytes = options_.commit_bytes;
  options.field_specs = options_.field_specs;
  options.source = options_.source + ", " + index_.plan + ", shard " + std::to_string(number);
  file_.emplace(shard_path(path_, index_.begun), std::move(options), fields_);
  if (!file_->complete()) file_->set_classes(index_.classes);
}

void ShardWriter::close_shard() {
  file_->finish();
  const Description& finished = file_->description();
  count(finished);
  index_.add(
      {.file = index_.begun, .records = finished.records, .fingerprint = finished.fingerprint});
  index_.begun.clear();
  file_.reset();
}

void ShardWriter::count(const Description& finished) {
  if (fields_.empty()) fields_ = finished.fields;
  for (const LeftOutItem& item : finished.left_out)
    left_out_before_.push_back({items_before_ + item.item, item.reason});
  items_before_ += finished.items;
}

void ShardWriter::go_to_shard(std::size_t next_bytes) {
  // The writer may have been interrupted just after it had finished a shard.
  if (file_ && file_->complete()) close_shard();
  if (!file_) open_next_shard();
  if (options_.shards > 0) {
    const std::uint64_t item = std::min(items(), options_.source_items - 1);
    const std::uint64_t target = shard_of(item, options_.shards, options_.source_items);
    while (index_.shards.size() < target) {
      close_shard();
      open_next_shard();
    }
  } else if (file_->size() > 0 && next_bytes > 0 &&
             file_->description().bytes + next_bytes > options_.shard_bytes) {
    close_shard();
    open_next_shard();
  }
}

void ShardWriter::append(std::span<const RecordField> fields) {
  check_open();
  guarded([&] {
    go_to_shard(encoded_size(fields));
    file_->append(fields);
  });
}

void ShardWriter::leave_out(std::string reason) {
  check_open();
  guarded([&] {
    go_to_shard(0);
    file_->leave_out(std::move(reason));
  });
}

void ShardWriter::set_classes(std::vector<std::string> names) {
  check_open();
  index_.classes = std::move(names);
  if (file_ && !file_->complete()) file_->set_classes(index_.classes);
}

void ShardWriter::finish() {
  if (failure_) throw *failure_;
  if (index_.complete) return;
  guarded([&] {
    if (file_) close_shard();
    while (index_.shards.size() < std::max<std::uint64_t>(options_.shards, 1)) {
      open_next_shard();
      close_shard();
    }
    index_.complete = true;
    try {
      write_index();
    } catch (...) {
      index_.complete = false;
      throw;
    }
  });
  lock_ = FileDescriptor();
}

std::vector<LeftOutItem> ShardWriter::left_out() const {
  std::vector<LeftOutItem> all = left_out_before_;
  if (file_)
    for (const LeftOutItem& item : file_->description().left_out)
      all.push_back({items_before_ + item.item, item.reason});
  return all;
}

void ShardWriter::write_index() {
  try {
    lock_ = replace_locked(path_, to_json(index_));
  } catch (const Error& error) {
    throw Error(error.code(),
                std::string(error.what()) + "; make room and resume it (`millrace pack --resume`)");
  }
}

void ShardWriter::guarded(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::io) throw;
    fail(std::string(error.what()) + ". In all, " + std::to_string(committed()) + " records of " +
         path_.string() + " are committed");
  }
}

}  // namespace millrace
