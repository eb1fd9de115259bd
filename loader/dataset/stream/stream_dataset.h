// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/one_pass_dataset.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "dataset/stream/stream_windows.h"

namespace millrace {

/// The dataset of a stream. Its records can be read while a run is under way.
class StreamDataset final : public Dataset {
 public:
  StreamDataset(std::shared_ptr<RecordStream> stream, const OnePassOptions& options);

  /// Begins a run. Throws `Error` (`invalid_argument`) if another run is under way, or if the
  /// stream was read before and cannot restart.
  std::shared_ptr<StreamWindows> begin(const StreamWindows::Run& run) const;
  bool can_restart() const { return stream_->can_restart(); }
  const OnePassOptions& options() const { return options_; }

  /// Throws `Error` (`invalid_argument`).
  std::uint64_t size() const override;
  std::unique_ptr<DatasetReader> make_reader() const override;
  std::string key(std::uint64_t index) const override;
  std::string name() const override { return name_; }
  std::vector<std::string> classes() const override { return stream_->classes(); }
  std::vector<FieldSpec> field_specs() const override { return stream_->field_specs(); }
  DatasetFacts facts() const override { return {.format = "one-pass stream"}; }

 private:
  class Reader;

  std::shared_ptr<StreamWindows> windows() const;

  const std::shared_ptr<RecordStream> stream_;
  const std::string name_;
  const OnePassOptions options_;
  /// Set by the first run that reads the stream.
  const std::shared_ptr<std::atomic<bool>> was_read_ = std::make_shared<std::atomic<bool>>(false);
  mutable Mutex mutex_;
  /// The run under way; it is owned by its pipeline.
  mutable std::weak_ptr<StreamWindows> windows_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
