// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace millrace::testing {

/// A dataset of made-up records: "label" is `label_of(index)`, "payload" some bytes. Its readers
/// read into memory of their own, like readers of a dataset that is not mapped. Hooks must be set
/// before the dataset is used; they may throw and block. It must be owned by a `shared_ptr`, which
/// readers share.
class MemoryDataset final : public Dataset, public std::enable_shared_from_this<MemoryDataset> {
 public:
  explicit MemoryDataset(std::uint64_t size) : size_(size) {}

  std::function<void(std::uint64_t)> on_read;
  std::function<void(std::span<const std::uint64_t>)> on_prefetch;

  static std::int64_t label_of(std::uint64_t index) {
    return static_cast<std::int64_t>(index) * 3 - 7;
  }
  static constexpr std::size_t payload_bytes = 100;
  static constexpr std::size_t record_bytes = payload_bytes + sizeof(std::int64_t);

  std::uint64_t size() const override { return size_; }

  std::unique_ptr<DatasetReader> make_reader() const override {
    ++readers_;
    return std::make_unique<Reader>(shared_from_this());
  }

  void prefetch(std::span<const std::uint64_t> indices) const override {
    prefetched_ += indices.size();
    if (on_prefetch) on_prefetch(indices);
  }

  std::string key(std::uint64_t index) const override {
    return "drawer/" + std::to_string(index) + ".rec";
  }
  std::string name() const override { return "memory"; }

  std::uint64_t reads() const { return reads_; }
  /// Number of readers that were made.
  std::uint64_t readers() const { return readers_; }
  /// Number of records that were announced to the dataset.
  std::uint64_t prefetched() const { return prefetched_; }

 private:
  class Reader final : public DatasetReader {
   public:
    explicit Reader(std::shared_ptr<const MemoryDataset> dataset) : dataset_(std::move(dataset)) {}

    Record read(std::uint64_t index) override {
      ++dataset_->reads_;
      if (dataset_->on_read) dataset_->on_read(index);
      const std::int64_t label = label_of(index);
      bytes_.assign(record_bytes, static_cast<std::byte>(index));
      std::memcpy(bytes_.data(), &label, sizeof label);
      const std::span<const std::byte> bytes = bytes_;
      fields_.assign(
          {{"label", bytes.first(sizeof label)}, {"payload", bytes.subspan(sizeof label)}});
      return Record(index, fields_);
    }

   private:
    std::shared_ptr<const MemoryDataset> dataset_;
    std::vector<std::byte> bytes_;
    std::vector<RecordField> fields_;
  };

  std::uint64_t size_;
  mutable std::atomic<std::uint64_t> readers_{0};
  mutable std::atomic<std::uint64_t> reads_{0};
  mutable std::atomic<std::uint64_t> prefetched_{0};
};

}  // namespace millrace::testing
