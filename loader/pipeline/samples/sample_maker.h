// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/batch_transform.h>
#include <millrace/dataset.h>
#include <millrace/pipeline_options.h>
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
#include "cache/recoded_records.h"
#include "cache/record_hints.h"
#include "cache/sample_cache.h"
#include "dataset/stream/stream_windows.h"
#include "pipeline/samples/sample_context.h"
#include "pipeline/samples/slot_poison.h"
#include "pipeline/slots/run_meter.h"
#include "pipeline/slots/slot_layout.h"
#include "report/histogram.h"
#include "report/label_counts.h"
#include "report/single_writer_counter.h"

namespace millrace {

/// Caches of the runtime for records that are read again. Each is null if it is off.
struct RecordCaches {
  std::shared_ptr<RecordHints> hints{};
  std::shared_ptr<SampleCache> cache{};
  std::shared_ptr<RecodedRecords> recoded{};

  /// Whether `PipelineOptions::cache_bytes` has an effect.
  bool has_cache() const { return cache != nullptr || recoded != nullptr; }
};

/// Reads records, makes their samples in slots, and applies the policy for bad records. The sample
/// workers call it. Only one thread at a time may use a worker number; several threads may use
/// different numbers at once.
class SampleMaker {
 public:
  /// A sample to be made.
  struct Task {
    /// Start of the slot, and the sample's index in it.
    std::byte* slot;
    std::size_t place;
    std::uint64_t position;
    std::uint64_t record;
    /// The batch's number, for the trace.
    std::uint64_t batch;
    /// Draws replacements of a bad record.
    const Sampler* sampler;
    /// Room of the micro-batch for a packed field.
    PackedRoom* room;
    /// Whether the sample is made again because the device could not make it. Then its packed field
    /// is not written to the slot.
    bool again = false;
    /// Whether its record is already known to be bad.
    bool known_bad = false;
  };
  /// Result of a task: the record that the sample was made of, and whether the sample is valid.
  struct SampleResult {
    std::uint64_t record;
    bool valid;
  };

  /// A batch whose samples are all made.
  struct BatchTask {
    std::byte* slot;
    /// Position of its first sample.
    std::uint64_t position;
    std::uint64_t batch;
    std::span<const std::uint64_t> indices;
    std::span<const std::uint8_t> valid;
  };

  /// Arguments of the constructor.
  struct Setup {
    std::shared_ptr<const Dataset> dataset;
    std::shared_ptr<const Transform> transform;
    SlotLayout layout;
    std::uint64_t seed = 0;
    BadRecords policy = BadRecords::fail;
    unsigned workers = 1;
    /// The maker adds a lane per worker to this group of the trace. Null turns tracing off.
    Trace* trace = nullptr;
    std::size_t trace_group = 0;
    /// Must outlive the maker. Null turns profiler ranges off.
    ProfilerRanges* profiler = nullptr;
    RecordCaches caches{};
    /// Windows of a stream, which supply replacements of bad records; null for other datasets.
    std::shared_ptr<const StreamWindows> windows{};
    std::shared_ptr<const BatchTransform> batch_transform{};
    bool poison = false;
  };
  explicit SampleMaker(Setup setup);

  /// Source of a worker's tasks.
  class Tasks {
   public:
    virtual ~Tasks() = default;
    /// Returns the next task; nullopt at the end.
    virtual std::optional<Task> next() = 0;
    virtual void made(const Task& task, const SampleResult& made) = 0;
  };

  using Clock = std::chrono::steady_clock;

  /// Makes all samples of `tasks`, up to `at_once` of them interleaved. Throws `Error` with stage
  /// and record if the run must end.
  void make(Tasks& tasks, unsigned worker);
  /// Makes a sample with a packed field again. `tasks` has this one task. Returns the packed field,
  /// valid until the next call. One thread at a time may call it.
  const std::byte* make_again(Tasks& tasks);
  /// Worker number that `make_again` uses.
  unsigned again_worker() const { return static_cast<unsigned>(workers_.size() - 1); }
  /// Number of samples that a worker interleaves: 1 or 2.
  std::size_t at_once() const { return at_once_; }

  /// Whether a batch transform runs once a batch's samples are made.
  bool finishes_batches() const { return batch_transform_ != nullptr; }
  /// Runs the batch transform. Throws `Error` with its stage if the run must end.
  void finish_batch(const BatchTask& task, unsigned worker);

  WorkCounts counts() const;
  /// Returns the cache's figures between two counts.
  CacheReport cache_report(const WorkCounts& now, const WorkCounts& base) const;
  /// Number of samples made by `workers` workers from number `first` on.
  std::uint64_t samples_by(unsigned first, unsigned workers) const;
  /// Time that these workers have spent on samples so far.
  std::chrono::nanoseconds busy_of(unsigned first, unsigned workers) const;
  /// Time in which the stream was read; nullopt for other datasets.
  std::optional<std::chrono::nanoseconds> stream_busy() const {
    return windows_ != nullptr ? std::optional(windows_->busy()) : std::nullopt;
  }
  /// Writes the number and the list of bad records into a report, both of one moment.
  void fill_bad_records(Report& report) const;
  /// Size of the record hints in bytes, over all pipelines that share them.
  std::size_t hint_bytes() const;
  /// Size of the cache in bytes, over all pipelines that share it.
  std::size_t cache_bytes() const;
  /// Warnings about optional calls of the dataset that threw.
  std::vector<std::string> warnings() const;
  const std::vector<std::string>& stages() const { return stages_; }
  std::string description() const { return transform_->description(); }
  /// The longest running sample: its stage, and a sentence about it. Nullopt if no sample is being
  /// made.
  struct Running {
    std::string stage;
    std::string what;
  };
  std::optional<Running> longest_running() const;

 private:
  /// The objects that a `SampleTask` refers to.
  struct Subject {
    Record record;
    Random random;
    Sample sample;
    SampleTask task{record, random, sample};

    template <typename... Arguments>
    Subject(const Record& of, Random begin, SampleContext& context, Arguments&&... of_sample)
        : record(of), random(begin), sample(context.begin(std::forward<Arguments>(of_sample)...)) {}
  };
  /// State of one of the samples that a worker is making.
  struct SampleLane {
    std::unique_ptr<DatasetReader> reader;
    /// Tensors of the current sample. Only their addresses differ from sample to sample.
    std::vector<Tensor> fields;
    std::vector<std::uint64_t> stage_ns;
    /// Task of the current sample; nullopt between samples.
    std::optional<Task> task;
    SampleResult made{};
    /// Number of bad records that were tried for this sample, and the last of them.
    unsigned bad = 0;
    std::optional<std::uint64_t> last_bad;
    // Read by other threads; they order no other memory.
    std::atomic<std::uint64_t> record{0};  // the batch's number while the batch transform runs
    std::atomic<std::size_t> stage{0};
    std::atomic<std::int64_t> since_ns{0};  // 0 between samples
    SampleContext context{&stage};
    /// Nullopt before the record is read, and again if the record was bad.
    std::optional<Subject> subject;
    /// Null if slots are not poisoned.
    std::unique_ptr<SlotPoison> poison;
    /// Nullopt if samples have no packed field.
    std::optional<PackedSample> packed;
  };
  /// State of one worker, on cache lines of its own.
  struct alignas(64) Worker {
    std::unique_ptr<TransformWorker> transform;
    /// The first `at_once` are used.
    std::array<SampleLane, 2> lanes;
    Trace::Lane* lane = nullptr;
    /// One per stage. Other threads read them while the worker adds to them.
    std::vector<Histogram> stages;
    LabelCounts decoders;
    /// Nanoseconds in the transform's stages, by the name of the decoder.
    LabelCounts decoder_ns;
    // Read by other threads; they order no other memory.
    SingleWriterCounter busy_ns;
    SingleWriterCounter samples;
    SingleWriterCounter encoded_bytes;
    /// By `SampleContext::Source`.
    std::array<SingleWriterCounter, SampleContext::source_count> made_from;
    std::array<SingleWriterCounter, SampleContext::source_count> made_from_ns;
  };
  friend class WorkerSource;

  /// Stage number of a sample whose record is being read. The transform's stages are numbered from
  /// 0.
  static constexpr std::size_t reading = static_cast<std::size_t>(-1);

  void note_stage(const Task& task, std::size_t stage, Clock::time_point begin,
                  std::chrono::nanoseconds taken, std::uint64_t record, Worker& worker);
  /// Ends a sample's packed field and writes its offset to the slot.
  void end_packed(SampleLane& lane);
  /// Zeroes the bytes after the lengths of a sample's variable fields.
  void clear_tails(std::byte* slot, std::size_t place);
  void note_bad(std::uint64_t index, const std::string& reason);
  /// Keeps the first failure of each optional call of the dataset. `call` names it; `what` is a
  /// clause such as "key() threw: ...".
  void note_failure(const char* call, const std::string& what);
  [[noreturn]] void rethrow_of_batch(std::uint64_t batch) const;
  [[noreturn]] void rethrow_with_context(const SampleLane& place);
  std::string stage_name(std::size_t stage) const;

  std::shared_ptr<const Dataset> dataset_;
  std::shared_ptr<const Transform> transform_;
  SlotLayout layout_;
  std::uint64_t seed_;
  BadRecords policy_;
  std::vector<std::string> stages_;
  /// Names of the stages, kept by the trace, and for the profiler; empty if off.
  std::vector<const char*> span_names_;
  std::vector<const char*> range_names_;
  ProfilerRanges* profiler_;
  const RecordCaches caches_;
  const std::shared_ptr<const StreamWindows> windows_;
  const std::shared_ptr<const BatchTransform> batch_transform_;
  const std::size_t at_once_;
  /// Number of fields that the batch transform adds after the transform's, lengths included.
  std::size_t added_fields_ = 0;
  std::vector<std::unique_ptr<Worker>> workers_;

  mutable Mutex mutex_;
  std::uint64_t made_again_ MILLRACE_GUARDED_BY(mutex_) = 0;
  std::uint64_t bad_records_ MILLRACE_GUARDED_BY(mutex_) = 0;
  std::vector<BadRecord> bad_record_list_ MILLRACE_GUARDED_BY(mutex_);
  /// Keyed by the call that failed.
  std::map<std::string, std::string> failures_ MILLRACE_GUARDED_BY(mutex_);
};

// Inline, since it is called for each stage of each sample and a sample may take 0.3 us.
inline void SampleMaker::note_stage(const Task& task, std::size_t stage, Clock::time_point begin,
                                    std::chrono::nanoseconds taken, std::uint64_t record,
                                    Worker& worker) {
  worker.stages[stage].add(taken);
  worker.busy_ns.add(static_cast<std::uint64_t>(taken.count()));
  if (worker.lane != nullptr)
    worker.lane->add(span_names_[stage], begin, begin + taken, task.batch, record);
}

}  // namespace millrace
