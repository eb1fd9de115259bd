// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/batch_transform.h>
#include <millrace/dataset.h>
#include <millrace/pipeline.h>
#include <millrace/sampler.h>
#include <millrace/trace.h>
#include <millrace/transform.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "dataset/record_notes.h"
#include "dataset/sample_cache.h"
#include "pipeline/road/run_meter.h"
#include "pipeline/road/slot_layout.h"
#include "pipeline/samples/slot_poison.h"
#include "report/count.h"
#include "report/histogram.h"
#include "report/tally.h"

namespace millrace {

/// What is kept of records for other samples of them; null where nothing is.
struct KeptOfRecords {
  std::shared_ptr<RecordNotes> notes{};
  std::shared_ptr<SampleCache> cache{};
};

/// The worker's part of the road: reads a record and makes it into a sample in its place, with the
/// policy for bad records. Each worker number is used by one thread at a time; different numbers at
/// once.
class SampleMaker {
 public:
  /// A sample to be made.
  struct Task {
    /// Start of the slot and the sample's place in it.
    std::byte* slot;
    std::size_t place;
    std::uint64_t position;
    std::uint64_t record;
    /// The batch's number, for the trace.
    std::uint64_t batch;
  };
  /// What became of it: the record that was used in the end, and whether the sample is valid.
  struct Made {
    std::uint64_t record;
    bool valid;
  };

  /// A batch whose samples are all made.
  struct BatchTask {
    std::byte* slot;
    /// Of its first sample.
    std::uint64_t position;
    std::uint64_t batch;
    std::span<const std::uint64_t> indices;
    std::span<const std::uint8_t> valid;
  };

  /// A lane per worker is added to `group` of `trace`; null = nothing is traced. So it is for
  /// `profiler`, which outlives the maker.
  SampleMaker(std::shared_ptr<const Dataset> dataset, std::shared_ptr<const Transform> transform,
              const SlotLayout& layout, Sampler sampler, std::uint64_t seed, BadRecords policy,
              unsigned workers, Trace* trace, std::size_t group, ProfilerRanges* profiler,
              KeptOfRecords kept = {},
              std::shared_ptr<const BatchTransform> batch_transform = nullptr, bool poison = false);

  /// Where a worker takes its tasks from.
  class Tasks {
   public:
    virtual ~Tasks() = default;
    /// Nullopt if there are no more.
    virtual std::optional<Task> next() = 0;
    virtual void made(const Task& task, const Made& made) = 0;
  };

  using Clock = std::chrono::steady_clock;

  /// Makes all samples of `tasks`, up to `at_once` in turn. Throws `Error` with stage and record
  /// when the run must end.
  void make(Tasks& tasks, unsigned worker);
  /// How many samples a worker has in the making at once.
  std::size_t at_once() const { return at_once_; }

  /// Whether batches are changed once their samples are made.
  bool finishes_batches() const { return batch_transform_ != nullptr; }
  /// Runs the batch transform. Throws `Error` with its stage if the run must end.
  void finish_batch(const BatchTask& task, unsigned worker);

  WorkCounts counts() const;
  /// Samples made by `workers` workers from number `first` up.
  std::uint64_t samples_by(unsigned first, unsigned workers) const;
  /// Time that workers spent on samples so far, all together.
  std::chrono::nanoseconds busy() const;
  std::uint64_t bad_records() const;
  /// What the notes take of all who share them.
  std::size_t note_bytes() const;
  /// The same of the cache.
  std::size_t cache_bytes() const;
  std::vector<BadRecord> bad_record_list() const;
  /// Warnings about optional calls of the dataset that threw.
  std::vector<std::string> warnings() const;
  const std::vector<std::string>& stages() const { return stages_; }
  std::string description() const { return transform_->description(); }
  /// The stage of the sample that has been in the making for longest, and a sentence about it; none
  /// when there is none.
  struct Running {
    std::string stage;
    std::string what;
  };
  std::optional<Running> longest_running() const;

 private:
  /// What `SampleTask` refers to.
  struct Subject {
    Record record;
    Random random;
    Sample sample;
    SampleTask task{record, random, sample};

    template <typename... Arguments>
    Subject(const Record& of, Random begin, Arguments&&... of_sample)
        : record(of), random(begin), sample(std::forward<Arguments>(of_sample)...) {}
  };
  /// A place for one of the samples that a worker has in the making.
  struct Place {
    std::unique_ptr<DatasetReader> reader;
    /// Only where they lie differs from sample to sample.
    std::vector<Tensor> fields;
    std::vector<std::uint64_t> stage_ns;
    Sample::NoteBuffers notes;
    /// Of the sample that is in the making; nullopt if none is.
    std::optional<Task> task;
    Made made{};
    /// Bad records that were tried for it.
    unsigned bad = 0;
    /// Nullopt before its record is read, and again if that was bad.
    std::optional<Subject> subject;
    // Looked at by others; marks that order nothing.
    std::atomic<std::uint64_t> record{0};  // in the batch transform's stage the batch's number
    std::atomic<std::size_t> stage{0};
    std::atomic<std::int64_t> since_ns{0};  // 0 = between samples
    /// Null: places are not poisoned.
    std::unique_ptr<SlotPoison> poison;
  };
  /// One thread's own; on cache lines of its own.
  struct alignas(64) Worker {
    std::unique_ptr<TransformWorker> transform;
    /// `at_once` of them are used.
    std::array<Place, 2> places;
    Trace::Lane* lane = nullptr;
    /// Per stage; others look at them while the worker adds to them.
    std::vector<Histogram> stages;
    Tally ways;
    /// Nanoseconds in the transform's stages, by the same ways.
    Tally way_ns;
    // Looked at by others; counts that order nothing.
    Count busy_ns;
    Count samples;
    Count encoded_bytes;
    Count cache_hits;
    Count cache_misses;
  };
  friend class WorkerSource;

  /// The stage of a sample whose record is being read; the transform's have the numbers from 0 on.
  static constexpr std::size_t reading = static_cast<std::size_t>(-1);

  void note_stage(const Task& task, std::size_t stage, Clock::time_point begin,
                  std::chrono::nanoseconds taken, std::uint64_t record, Worker& worker);
  /// Zeroes what lies beyond the lengths of a sample's variable fields.
  void clear_tails(std::byte* slot, std::size_t place);
  void note_bad(std::uint64_t index, const std::string& reason);
  /// Keeps the first failure of the dataset's call `call`, a clause such as "key() threw".
  void note_failure(const char* call, const std::string& what);
  [[noreturn]] void rethrow_of_batch(std::uint64_t batch) const;
  [[noreturn]] void rethrow_with_context(const Place& place);
  std::string stage_name(std::size_t stage) const;

  std::shared_ptr<const Dataset> dataset_;
  std::shared_ptr<const Transform> transform_;
  SlotLayout layout_;
  /// For replacements.
  Sampler sampler_;
  std::uint64_t seed_;
  BadRecords policy_;
  std::vector<std::string> stages_;
  /// The same, kept by the trace; and for the profiler, only where there is one.
  std::vector<const char*> span_names_;
  std::vector<const char*> range_names_;
  ProfilerRanges* profiler_;
  const KeptOfRecords kept_;
  const bool has_stored_notes_;
  const std::shared_ptr<const BatchTransform> batch_transform_;
  const std::size_t at_once_;
  /// The fields that it adds behind the transform's, lengths among them.
  std::size_t added_fields_ = 0;
  std::vector<std::unique_ptr<Worker>> workers_;

  mutable Mutex mutex_;
  std::uint64_t bad_records_ MILLRACE_GUARDED_BY(mutex_) = 0;
  std::vector<BadRecord> bad_record_list_ MILLRACE_GUARDED_BY(mutex_);
  /// By the call that failed.
  std::map<std::string, std::string> failures_ MILLRACE_GUARDED_BY(mutex_);
};

// Here, since it is called for each stage of each sample and a sample may take 0.3 us.
inline void SampleMaker::note_stage(const Task& task, std::size_t stage, Clock::time_point begin,
                                    std::chrono::nanoseconds taken, std::uint64_t record,
                                    Worker& worker) {
  worker.stages[stage].add(taken);
  worker.busy_ns.add(static_cast<std::uint64_t>(taken.count()));
  if (worker.lane != nullptr)
    worker.lane->add(span_names_[stage], begin, begin + taken, task.batch, record);
}

}  // namespace millrace
