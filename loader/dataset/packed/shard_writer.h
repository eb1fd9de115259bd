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
  ShardWriter(std::filesystem::path path, WriterOptions options);

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
  std::string shard_name(std::uint64_t number) const;
  void check_no_shards() const;
  /// Begins the next shard.
  void open_shard();
  /// Finishes the one that is begun.
  void close_shard();
  void count(const Description& finished);
  /// Makes `file_` the one that the source's next item belongs to.
  void go_to_shard(std::size_t next_bytes);
  void write_index();
  /// Keeps an `io` error for every later call.
  void guarded(const std::function<void()>& work);

  /// Its shards are the finished ones.
  ShardIndex index_;
  std::optional<FileWriter> file_;
  std::vector<std::string> fields_;
  std::uint64_t items_before_ = 0;
  std::vector<LeftOutItem> left_out_before_;
};

}  // namespace millrace
