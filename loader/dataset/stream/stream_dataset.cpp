// SPDX-License-Identifier: Apache-2.0
#include "dataset/stream/stream_dataset.h"

#include <millrace/error.h>

#include <utility>

#include "dataset/joined_dataset.h"

namespace millrace {
namespace {

[[noreturn]] void refuse_stream(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, message);
}

}  // namespace

class StreamDataset::Reader final : public DatasetReader {
 public:
  Reader(const StreamDataset& dataset, std::shared_ptr<StreamWindows> windows)
      : name_(dataset.name()), windows_(std::move(windows)) {}

  Record read(std::uint64_t index) override {
    held_ = windows_->find(index);
    const std::string& reason = held_->why_bad;
    if (!reason.empty())
      throw Error(ErrorCode::bad_record,
                  "record " + std::to_string(index) + " of " + name_ + ": " + reason, "", index,
                  reason);
    fields_.clear();
    for (const StreamRecord::Field& field : held_->record.fields)
      fields_.push_back({field.name, field.bytes});
    return Record(index, fields_);
  }

 private:
  const std::string name_;
  const std::shared_ptr<StreamWindows> windows_;
  std::shared_ptr<const StreamWindows::HeldRecord> held_;
  std::vector<RecordField> fields_;
};

StreamDataset::StreamDataset(std::shared_ptr<RecordStream> stream, const OnePassOptions& options)
    : stream_(std::move(stream)), name_(stream_->name()), options_(options) {}

std::shared_ptr<StreamWindows> StreamDataset::begin(const StreamWindows::Run& run) const {
  MutexLock lock(mutex_);
  // The windows of an ended run may still exist, because a worker may hold them for a moment
  // longer.
  if (const auto others = windows_.lock(); others != nullptr && !others->is_over())
    refuse_stream(name_ + ": another pipeline reads this stream; end that one first");
  if (*was_read_ && !can_restart())
    refuse_stream(name_ +
                  ": a pipeline has read this stream, which cannot begin again; open a new one");
  auto windows = std::make_shared<StreamWindows>(stream_, options_, run, was_read_);
  windows_ = windows;
  return windows;
}

std::uint64_t StreamDataset::size() const {
  refuse_stream(name_ +
                ": the number of records of a stream is known only at its end; a pipeline over "
                "this dataset needs no size");
}

std::shared_ptr<StreamWindows> StreamDataset::windows() const {
  MutexLock lock(mutex_);
  return windows_.lock();
}

std::unique_ptr<DatasetReader> StreamDataset::make_reader() const {
  std::shared_ptr<StreamWindows> current = windows();
  if (current == nullptr)
    refuse_stream(name_ + ": records of a stream can be read by a pipeline only");
  return std::make_unique<Reader>(*this, std::move(current));
}

std::string StreamDataset::key(std::uint64_t index) const {
  try {
    if (const std::shared_ptr<StreamWindows> current = windows())
      if (const auto held = current->find(index); !held->record.key.empty())
        return one_line(held->record.key);
  } catch (const Error&) {
    // The record has left the windows, so its key is unknown.
  }
  return Dataset::key(index);
}

std::shared_ptr<const Dataset> one_pass_dataset(std::shared_ptr<RecordStream> stream,
                                                const OnePassOptions& options) {
  if (stream == nullptr) refuse_stream("one_pass_dataset: the stream is null");
  if (options.window_records == 0)
    refuse_stream("window_records is 0; a window has at least one record");
  if (options.window_records > UINT32_MAX)
    refuse_stream("window_records is " + std::to_string(options.window_records) +
                  "; a window has at most 2^32 - 1 records");
  if (options.memory_bytes == 0)
    refuse_stream("memory_bytes is 0; it must be at least 1, and hold some windows");
  return std::make_shared<StreamDataset>(std::move(stream), options);
}

bool is_one_pass(const Dataset& dataset) {
  return dynamic_cast<const StreamDataset*>(&dataset) != nullptr;
}

bool can_restart(const Dataset& dataset) {
  const auto* const stream = dynamic_cast<const StreamDataset*>(&dataset);
  return stream == nullptr || stream->can_restart();
}

}  // namespace millrace
