// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/one_pass_dataset.h>
#include <millrace/random.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"

namespace millrace {

/// Positions in an epoch of a one-pass dataset, and so its largest number of records.
inline constexpr std::uint64_t stream_epoch_size = std::uint64_t{1} << 40;

/// The records of a run over a stream that are in memory: windows of consecutive records, each
/// shuffled by itself. A thread reads the stream into windows. The planner waits for windows and
/// holds the windows of batches in the making. Workers read records from the windows. A window is
/// freed when the planner has passed it and no batch holds it. All methods may be called by several
/// threads at the same time, except that `read` is for one thread.
class StreamWindows : public std::enable_shared_from_this<StreamWindows> {
 public:
  struct Run {
    std::uint64_t seed = 0;
    /// Whether windows are shuffled.
    bool shuffled = true;
    /// The first epoch, and the epoch after the last.
    std::uint64_t epoch = 0;
    std::uint64_t end_epoch = UINT64_MAX;
    /// The record with which the first window begins.
    std::uint64_t first_record = 0;
  };
  /// A record in memory.
  struct HeldRecord {
    StreamRecord record{};
    /// Reason why the stream could not read it; empty for a good record.
    std::string why_bad{};
  };
  /// A need of the planner: the records [begin, end) of a batch, and the knowledge whether record
  /// `known` - 1 exists.
  struct Need {
    std::uint64_t epoch;
    std::uint64_t begin;
    std::uint64_t end;
    std::uint64_t known;
  };
  /// State of the current epoch: its number of records, once it is known.
  struct Extent {
    std::optional<std::uint64_t> records;
  };

  /// `was_read` says whether the stream was read before; the run then restarts the stream. `read`
  /// and `close` set it.
  StreamWindows(std::shared_ptr<RecordStream> stream, const OnePassOptions& options, const Run& run,
                std::shared_ptr<std::atomic<bool>> was_read);

  /// Reads the stream; returns after the last epoch, after `close`, or at an error, which
  /// `wait_for` throws.
  void read() noexcept;
  /// Ends all waits, and interrupts the stream.
  void close() noexcept;
  /// Whether this object is closed and no longer uses the stream.
  bool is_over() const;

  /// Waits until the needed records are in complete windows, or the epoch has ended. Returns
  /// nullopt after `close`. A new epoch begins when no batch of the epoch before is held. Throws
  /// the error of the stream, or `Error` (`invalid_argument`) if the records do not fit in memory.
  std::optional<Extent> wait_for(const Need& need);
  /// Replaces offsets in the epoch by record numbers. The offsets' windows must be complete.
  void draw(std::span<std::uint64_t> offsets) const;
  /// Returns the first record of the window of an offset.
  std::uint64_t window_of(std::uint64_t offset) const;
  /// Keeps the windows from offset `begin` on in memory until the returned object is destroyed.
  std::shared_ptr<const void> hold(std::uint64_t begin);

  /// Returns a record of the current epoch. Throws `Error` (`invalid_argument`) if it is not in
  /// memory.
  std::shared_ptr<const HeldRecord> find(std::uint64_t record) const;
  /// Draws a record from the window of `record`.
  std::uint64_t replacement(Random& random, std::uint64_t record) const;

  const std::string& name() const { return name_; }
  /// Time that the stream has taken for the records so far.
  std::chrono::nanoseconds busy() const {
    return std::chrono::nanoseconds(busy_ns_.load(std::memory_order_relaxed));
  }
  /// Warnings for the report.
  std::vector<std::string> warnings() const;

 private:
  struct Window {
    std::uint64_t epoch;
    std::uint64_t first;
    std::vector<std::shared_ptr<const HeldRecord>> records{};
    std::size_t bytes = 0;
    /// Record of the window at each position of the shuffled window; empty until the window is
    /// complete.
    std::vector<std::uint32_t> order{};
    bool complete = false;
    /// Whether the epoch ends with this window.
    bool last = false;

    std::uint64_t end() const { return first + records.size(); }
  };

  void read_epochs();
  /// Begins the stream again if it was read before, and skips records. Returns false after `close`.
  bool begin_stream();
  /// Reads an epoch from record `first` on. Returns false after `close`.
  bool read_epoch(std::uint64_t epoch, std::uint64_t first);
  /// Waits until a window may begin. Returns false after `close`.
  bool begin_window(std::uint64_t epoch, std::uint64_t first);
  /// Waits until there is memory for a record. Returns false after `close`.
  bool wait_for_memory();
  /// Reads a record. Returns null at the end of the stream.
  std::shared_ptr<const HeldRecord> next();
  /// Adds a record to the open window. Returns whether the window is full.
  bool add(std::shared_ptr<const HeldRecord> record);
  void complete_window(bool last);
  void note_failure(std::uint64_t epoch);

  /// Begins the planner's epoch if no batch of the epoch before is held. Returns whether it has
  /// begun.
  bool begin_epoch(std::uint64_t epoch) MILLRACE_REQUIRES(mutex_);
  void free_windows() MILLRACE_REQUIRES(mutex_);
  void release(std::uint64_t begin);
  const Window& at(std::uint64_t record) const MILLRACE_REQUIRES(mutex_);

  const std::shared_ptr<RecordStream> stream_;
  const std::string name_;
  const OnePassOptions options_;
  const Run run_;
  const std::shared_ptr<std::atomic<bool>> was_read_;
  /// Whether this run begins with a restart of the stream. `close` does not change it.
  const bool restarts_;
  /// Set by `close`, for the stream's calls. It orders no other memory.
  std::atomic<bool> ended_{false};
  /// Number of the record that is read next. Used by the reading thread alone.
  std::uint64_t next_record_ = 0;
  /// Read by other threads; it orders no other memory.
  std::atomic<std::int64_t> busy_ns_{0};

  mutable Mutex mutex_;
  Condition reader_condition_;
  Condition planner_condition_;
  bool closed_ MILLRACE_GUARDED_BY(mutex_) = false;
  /// Whether the reading thread may use the stream.
  bool reads_ MILLRACE_GUARDED_BY(mutex_) = false;
  /// Number of threads that are interrupting the stream.
  int interrupts_ MILLRACE_GUARDED_BY(mutex_) = 0;
  std::exception_ptr failure_ MILLRACE_GUARDED_BY(mutex_);
  /// Windows of the planner's epoch, then windows of the next epoch. Only the last window may be
  /// incomplete.
  std::deque<Window> windows_ MILLRACE_GUARDED_BY(mutex_);
  std::size_t held_bytes_ MILLRACE_GUARDED_BY(mutex_) = 0;
  bool waits_for_memory_ MILLRACE_GUARDED_BY(mutex_) = false;
  /// The planner's last need.
  Need need_ MILLRACE_GUARDED_BY(mutex_);
  /// First offset of each batch in the making.
  std::multiset<std::uint64_t> holds_ MILLRACE_GUARDED_BY(mutex_);
  /// Number of complete windows, and of windows that ended early for lack of memory.
  std::uint64_t completed_ MILLRACE_GUARDED_BY(mutex_) = 0;
  std::uint64_t ended_early_ MILLRACE_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace
