// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>

namespace millrace::testing {

/// A dataset of made-up records: "label" is `label_of(index)`, "payload" some bytes. It reads into
/// the buffer, as a dataset that is not mapped does. Hooks are set before the dataset is used; they
/// may throw and block.
class MemoryDataset final : public Dataset {
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

  Record read(std::uint64_t index, ReadBuffer& buffer) const override {
    ++reads_;
    if (on_read) on_read(index);
    const std::int64_t label = label_of(index);
    buffer.bytes.assign(record_bytes, static_cast<std::byte>(index));
    std::memcpy(buffer.bytes.data(), &label, sizeof label);
    const std::span<const std::byte> bytes = buffer.bytes;
    buffer.fields.assign(
        {{"label", bytes.first(sizeof label)}, {"payload", bytes.subspan(sizeof label)}});
    return Record(index, buffer.fields);
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
  /// Records that the dataset was told of.
  std::uint64_t prefetched() const { return prefetched_; }

 private:
  std::uint64_t size_;
  mutable std::atomic<std::uint64_t> reads_{0};
  mutable std::atomic<std::uint64_t> prefetched_{0};
};

}  // namespace millrace::testing
