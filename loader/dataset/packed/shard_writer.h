// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "dataset/packed/file_writer.h"
#include "dataset/packed/shard_index.h"

namespace millrace {

/// Returns the shard of an item (< `items`) if the items are divided equally among `shards` shards.
std::uint64_t shard_of(std::uint64_t item, std::uint64_t shards, std::uint64_t items);

/// Writes several consecutive dataset files and the index that lists them. The options and the
/// source alone decide which records go into which file, so a resumed writer makes the same files.
class ShardWriter final : public RecordWriter {
 public:
  /// `path`: final path of the index, beside the shards, which are named after it. `written`: path
  /// of the index until the dataset is finished.
  ShardWriter(std::filesystem::path path, std::filesystem::path written, WriterOptions options);

  void append(std::span<const RecordField> fields) override;
  void leave_out(std::string reason) override;
  void set_classes(std::vector<std::string> names) override;
  void finish() override;
  bool complete() const override { return index_.complete; }
  std::uint64_t size() const override { return index_.records + (file_ ? file_->size() : 0); }
  std::uint64_t committed() const override {
    return index_.records + (file_ ? file_->committed() : 0);
  }
  std::uint64_t items() const override { return items_before_ + (file_ ? file_->items() : 0); }
  std::vector<LeftOutItem> left_out() const override;

 private:
  void begin();
  void take_up();
  /// Returns the name of a shard. `copy` is added to avoid the name of an existing file.
  std::string shard_name(std::uint64_t number, const std::string& copy = "") const;
  /// Returns the name of a shard. If `beside_others_`, no file has that name yet.
  std::string free_name(std::uint64_t number) const;
  void check_no_shards() const;
  /// Begins the next shard, or resumes it.
  void open_shard(std::string name);
  void open_next_shard() { open_shard(free_name(index_.shards.size())); }
  /// Finishes the shard that is being written.
  void close_shard();
  void count(const Description& finished);
  /// Switches `file_` to the shard of the source's next item.
  void go_to_shard(std::size_t next_bytes);
  void write_index();
  /// Calls `work`. If that throws an `io` error, stores the error, which every later call throws
  /// again.
  void guarded(const std::function<void()>& work);

  /// The path that the shards are named after.
  std::filesystem::path named_;
  /// Whether another dataset's files may already have the names of this dataset's shards.
  bool beside_others_;
  /// Index with the finished shards.
  ShardIndex index_;
  std::optional<FileWriter> file_;
  std::vector<std::string> fields_;
  std::uint64_t items_before_ = 0;
  std::vector<LeftOutItem> left_out_before_;
};

}  // namespace millrace
