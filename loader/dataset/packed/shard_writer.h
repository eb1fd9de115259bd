// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "dataset/packed/file_writer.h"
#include "dataset/packed/shard_index.h"

namespace millrace {

/// Writes several dataset files, one behind the other, and the index that lists them. Which records
/// go into which file depends on the options and the source alone, so that a resumed writer makes
/// the same files.
class ShardWriter final : public RecordWriter {
 public:
  /// `path`: where the index lies in the end, beside the shards, which are named after it.
  /// `written`: where until then.
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
  /// The name of a shard; `copy`: what tells it from one that is there.
  std::string shard_name(std::uint64_t number, const std::string& copy = "") const;
  /// One that no file has, where another dataset is replaced.
  std::string free_name(std::uint64_t number) const;
  void check_no_shards() const;
  /// Begins the next shard, or goes on with it.
  void open_shard(std::string name);
  void open_next_shard() { open_shard(free_name(index_.shards.size())); }
  /// Finishes the one that is begun.
  void close_shard();
  void count(const Description& finished);
  /// Makes `file_` the one that the source's next item belongs to.
  void go_to_shard(std::size_t next_bytes);
  void write_index();
  /// Keeps an `io` error for every later call.
  void guarded(const std::function<void()>& work);

  /// What the shards are named after.
  std::filesystem::path named_;
  /// Whether names of shards may be taken by those of another dataset.
  bool beside_others_;
  /// Its shards are the finished ones.
  ShardIndex index_;
  std::optional<FileWriter> file_;
  std::vector<std::string> fields_;
  std::uint64_t items_before_ = 0;
  std::vector<LeftOutItem> left_out_before_;
};

}  // namespace millrace
