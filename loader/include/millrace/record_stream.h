// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>
#include <millrace/sample_spec.h>

// Sources of records that are read once from front to back.
//
// Threads: a pipeline calls one stream from one thread at a time, except `interrupt`, `name`,
// `classes` and `field_specs`, which any thread may call at any time.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace MILLRACE_API millrace {

/// One record of a stream. It owns its bytes.
struct StreamRecord {
  struct Field {
    std::string name{};
    std::vector<std::byte> bytes{};
  };

  /// Name by which a person can find the record; empty = "record N".
  std::string key{};
  /// The fields, in their order. Image transforms expect "image" and "label" (int64,
  /// little-endian).
  std::vector<Field> fields{};
};

/// A sequence of records whose length is known only at its end: a pipe, a generator, a network
/// feed. `one_pass_dataset` makes a dataset of it.
///
/// The stream must give the same records in the same order each time it is read. Otherwise a run is
/// not reproducible and cannot be resumed. Record numbers count from 0 in each pass.
class RecordStream {
 public:
  virtual ~RecordStream() = default;

  /// Writes the next record into `record`, which is empty. Returns false at the end; the pipeline
  /// then calls it again only after `restart`. May block until a record arrives. Throws `Error`
  /// with code `bad_record` if only this record is unreadable: it counts as a record, the
  /// pipeline's `bad_records` policy applies, and the next call reads the record after it. Any
  /// other exception ends the run.
  virtual bool next(StreamRecord& record) = 0;

  /// Skips the next `count` records, bad ones included, when a run is resumed. Throws `Error`
  /// (`invalid_argument`) if the stream has fewer records. The default reads the records, and
  /// throws if the run ends meanwhile (`run_ended`). Override it if the stream can skip faster, or
  /// already begins at the right record, such as a feed with an offset.
  virtual void skip(std::uint64_t count);

  /// Whether the stream can begin again at its first record; false by default. Such a stream can
  /// have several epochs.
  virtual bool can_restart() const { return false; }
  /// Begins again at the first record. Called only if `can_restart` returns true, possibly before
  /// the stream has ended.
  virtual void restart() {}

  /// Makes a call of `next` or `skip` that waits, or is about to wait, throw any exception soon.
  /// Called by another thread when the run ends. A later run calls `restart` first. The default
  /// does nothing: `Pipeline::stop` then waits for the call, at most `debug.stop_timeout`.
  virtual void interrupt() noexcept {}

  /// The stream's name for messages, such as its path.
  virtual std::string name() const = 0;
  /// Like `Dataset::classes` and `Dataset::field_specs`; empty by default.
  virtual std::vector<std::string> classes() const { return {}; }
  virtual std::vector<FieldSpec> field_specs() const { return {}; }

 protected:
  /// Returns whether the run that calls `next` or `skip` has ended. A call that works for long
  /// without waiting may check this and throw any exception. Only for the thread that runs the
  /// call; false outside of calls.
  bool run_ended() const {
    return run_ended_ != nullptr && run_ended_->load(std::memory_order_relaxed);
  }

 private:
  friend class StreamWindows;
  /// Flag of the run that reads this stream: whether it has ended. Null while no run reads. Set by
  /// the reading thread (`StreamWindows::read`).
  const std::atomic<bool>* run_ended_ = nullptr;
};

}  // namespace millrace
