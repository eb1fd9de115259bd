// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/host_device.h>
#include <millrace/one_pass_dataset.h>
#include <millrace/pipeline.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "support/fake_dataset.h"
#include "support/fake_transform.h"

namespace millrace::testing {

/// Positions of an epoch; see <millrace/one_pass_dataset.h>.
inline constexpr std::uint64_t epoch_positions = std::uint64_t{1} << 40;

/// A stream of the records of a `MemoryDataset`. Hooks must be set before the stream is used; they
/// may throw and block.
class MemoryStream final : public RecordStream {
 public:
  explicit MemoryStream(std::uint64_t records) : records_(records) {}

  /// Called before a record is given, with its number.
  std::function<void(std::uint64_t)> on_next;
  std::function<void()> on_interrupt;
  std::function<void()> on_restart;
  bool restarts = false;
  /// Whether `skip` needs no reads.
  bool skips_at_once = false;
  std::size_t payload_bytes = MemoryDataset::payload_bytes;

  bool next(StreamRecord& record) override {
    if (on_next) on_next(at_);
    if (at_ == records_) return false;
    const std::uint64_t index = at_++;
    ++given_;
    const std::int64_t label = MemoryDataset::label_of(index);
    record.key = "drawer/" + std::to_string(index) + ".rec";
    record.fields.resize(2);
    record.fields[0].name = "label";
    record.fields[0].bytes.resize(sizeof label);
    std::memcpy(record.fields[0].bytes.data(), &label, sizeof label);
    record.fields[1].name = "payload";
    record.fields[1].bytes.assign(payload_bytes, static_cast<std::byte>(index));
    return true;
  }
  void skip(std::uint64_t count) override {
    skipped_ += count;
    if (!skips_at_once) return RecordStream::skip(count);
    at_ += count;
  }
  bool can_restart() const override { return restarts; }
  void restart() override {
    if (on_restart) on_restart();
    at_ = 0;
  }
  void interrupt() noexcept override {
    if (on_interrupt) on_interrupt();
  }
  std::string name() const override { return "brook"; }

  /// Passes over a record that `on_next` reports as bad.
  void pass_bad() { ++at_; }
  /// Number of records given so far, and of records skipped.
  std::uint64_t given() const { return given_; }
  std::uint64_t skipped() const { return skipped_; }

 private:
  const std::uint64_t records_;
  std::uint64_t at_ = 0;
  std::atomic<std::uint64_t> given_{0};
  std::atomic<std::uint64_t> skipped_{0};
};

/// Arguments of a pipeline over a stream of made-up records. Each pipeline gets a new dataset.
struct StreamRun {
  explicit StreamRun(std::uint64_t records) : stream(std::make_shared<MemoryStream>(records)) {
    options.batch_size = 8;
    options.seed = 42;
  }

  std::shared_ptr<MemoryStream> stream;
  OnePassOptions windows{.window_records = 32, .memory_bytes = 1 << 20};
  std::shared_ptr<StampTransform> transform = std::make_shared<StampTransform>();
  std::shared_ptr<Device> device = std::make_shared<HostDevice>();
  PipelineOptions options;

  void workers(unsigned count) { options.runtime = make_runtime({.workers = count}); }
  Pipeline pipeline() const {
    return Pipeline(one_pass_dataset(stream, windows), transform, device, options);
  }
};

}  // namespace millrace::testing
