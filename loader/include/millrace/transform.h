// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/batch_transform.h>
#include <millrace/dataset.h>
#include <millrace/detail/export.h>
#include <millrace/error.h>
#include <millrace/random.h>
#include <millrace/sample_spec.h>

// Threads: a `Transform` does not change; all its functions may be called from any thread at once.
// A `TransformWorker` is for the thread that made it, and so are the `Sample`s and the
// `SampleSource` that it is given.
//
// Lifetimes: a transform outlives its workers. A `Sample` lives for the one call of `make`, or from
// `SampleSource::next` to `made`, and so do the record and the random numbers that come with it.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace MILLRACE_API millrace {

class ProfilerRanges;
class RecordNotes;
class SampleCache;

/// One sample's place in its host slot, to be filled by a `TransformWorker`. Lives for the one call
/// of `make`, or from `SampleSource::next` to `made`.
class Sample {
 public:
  /// What others see as the stage of a sample that is paused.
  static constexpr std::size_t paused_stage = static_cast<std::size_t>(-2);

  /// `stage_ns[k]` collects the nanoseconds spent in stage k of `Transform::stages()`; may be
  /// empty. `now_in`, where given, always has the current stage, for other threads to look at.
  /// Stage 0 began at `begin`.
  Sample(const SampleSpec& spec, std::span<const Tensor> fields,
         std::span<std::uint64_t> stage_ns = {}, std::atomic<std::size_t>* now_in = nullptr,
         std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now());
  /// The part of `outer` that a transform fills which `outer`'s own wraps: `fields` are those of
  /// `outer` that `spec`, the wrapped one's, has, in its order. Stage k here is stage `first_stage`
  /// + k of `outer`, which is in stage `first_stage` from here on.
  Sample(Sample& outer, const SampleSpec& spec, std::span<const Tensor> fields,
         std::size_t first_stage);
  ~Sample();
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;

  /// Where field `field` (its place in the `SampleSpec`) of this sample goes; every byte must be
  /// written, for a variable field those below its length.
  const Tensor& operator[](std::size_t field) const { return fields_[field]; }
  const Tensor& operator[](std::string_view name) const { return fields_[spec_->index_of(name)]; }

  /// Says how long a variable field is here. Throws `Error` (`invalid_argument`) for a fixed field
  /// or a length above the spec's. A variable field that is not told has length 0.
  void set_length(std::size_t field, std::size_t length);

  /// The worker is in stage `stage` of `Transform::stages()` from here on; stage 0 has begun when
  /// `make` is called. Throws `Error` (`invalid_argument`) if the transform has no such stage.
  void enter_stage(std::size_t stage);
  /// Says by which of several ways the sample is made, for the report to count. `way` is a text
  /// that outlives the pipeline, the same pointer each time; the last call counts.
  void made_by(const char* way);
  /// Nullptr if no way was told.
  const char* way() const { return way_; }
  /// Whether there are notes: they are kept (`PipelineOptions::index_bytes`), or some are stored
  /// beside the dataset.
  bool has_notes() const;
  /// What was noted of this sample's record before (`keep_note`), by any transform of the pipelines
  /// that share the dataset and the runtime, else what is stored of it (`Dataset::stored_note`), so
  /// it must say itself what it is and of which bytes; empty if there is nothing. Samples must be
  /// the same with notes and without. Valid until the next call.
  std::span<const std::byte> note();
  /// Keeps a note in place of the one before, so that the record is made faster the next time; the
  /// last call counts. Does nothing where there is no more room, or if the sample is not made.
  void keep_note(std::span<const std::byte> note);
  /// Memory for a note that is read and one that is to be kept, used again and again.
  struct NoteBuffers {
    std::vector<std::byte> read;
    std::vector<std::byte> kept;
    /// The exception of `Dataset::stored_note`, if it threw; the report warns of it.
    std::string failure{};
  };
  /// Where the notes of record `record` are: those that are kept, nullptr if none are, and those
  /// that are stored. The pipeline calls it before `make`.
  void use_notes(RecordNotes* kept, const Dataset& stored, std::uint64_t record,
                 NoteBuffers& buffers);
  /// Keeps the note that it was given. The pipeline calls it when the sample is made.
  void store_note();
  /// What is kept of this sample's record in memory (`PipelineOptions::cache_bytes`): the bytes of
  /// `Transform::fixed_part`, as a worker has made them before. Empty if nothing is. Valid as long
  /// as the sample.
  std::span<const std::byte> cached();
  /// Room for these bytes where nothing is kept of the record: the worker makes them there, all of
  /// them, and its sample of them, and they are kept if the sample is made. Empty where there is no
  /// cache, or no more room in it.
  std::span<std::byte> room_in_cache();
  /// Whether `cached` gave the bytes.
  bool from_cache() const { return outer_ != nullptr ? outer_->from_cache() : from_cache_; }
  /// Where the bytes of record `record` are kept. The pipeline calls it before `make`.
  void use_cache(SampleCache& cache, std::uint64_t record);
  /// Keeps what was made in the room that it gave. The pipeline calls it when the sample is made.
  void store_in_cache();
  /// The stage's time ends here, until it goes on: others are made meanwhile. What passed so far
  /// was spent on `shared_by` samples alike. For `TransformWorker::make_in_turn`.
  void pause(unsigned shared_by = 1);
  void go_on();
  /// Ends the current stage's time; the pipeline calls it after `make`.
  void finish();
  /// When that was; not of a part.
  std::chrono::steady_clock::time_point finished_at() const { return since_; }
  /// From here on `profiler` is told of the stages, by `names` and as those of batch `batch`, until
  /// `finish()` or the sample's end. The pipeline calls it before `make`.
  void show(ProfilerRanges& profiler, std::span<const char* const> names, std::uint64_t batch);

 private:
  void note_stage();
  void stop(unsigned shared_by = 1);
  void end_range();
  void clear_lengths();

  const SampleSpec* spec_;
  std::span<const Tensor> fields_;
  /// Of a part: whose stages its own are, and from which one on.
  Sample* outer_ = nullptr;
  std::size_t first_stage_ = 0;
  std::span<std::uint64_t> stage_ns_;
  std::atomic<std::size_t>* now_in_ = nullptr;
  std::size_t stage_ = 0;
  bool paused_ = false;
  std::chrono::steady_clock::time_point since_;
  /// The ranges of its stages in a profiler.
  struct Shown {
    /// Nullptr: nobody is told.
    ProfilerRanges* profiler = nullptr;
    std::span<const char* const> names;
    std::uint64_t batch = 0;
    bool in_range = false;
  };
  Shown shown_{};
  const char* way_ = nullptr;
  /// Nullptr: none are kept.
  RecordNotes* kept_notes_ = nullptr;
  const Dataset* stored_notes_ = nullptr;
  std::uint64_t record_ = 0;
  /// Nullptr: there are no notes.
  NoteBuffers* note_buffers_ = nullptr;
  /// Nullptr: there is none.
  SampleCache* cache_ = nullptr;
  /// Given for this sample and not kept yet.
  std::span<std::byte> room_{};
  bool from_cache_ = false;
};

/// What `TransformWorker::make` takes.
struct SampleTask {
  const Record& record;
  Random& random;
  Sample& sample;
};

/// Samples that one worker is to make. For one thread.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  /// The next sample, to be given back to `made` or `failed`, and valid until then. Up to
  /// `Transform::samples_at_once()` of them may be in the making. Nullptr if there is no room or no
  /// sample now, since one that is in the making may come again; at the end, if none is.
  virtual SampleTask* next() = 0;
  /// Says what came of a sample, as `make` does. It may come again, from another record.
  virtual void made(SampleTask& task, const Status& status) = 0;
  /// Says, where an exception is caught, that the sample threw it. Throws if it ends the run.
  virtual void failed(SampleTask& task) = 0;
  /// Says what came of a sample: the `Status` that `make()` returns, or what it throws.
  template <typename Make>
  void end(SampleTask& task, const Make& make) {
    Status status = Status::ok();
    try {
      status = make();
    } catch (...) {
      return failed(task);
    }
    made(task, status);
  }
};

/// One thread's decoder handles and scratch.
class TransformWorker {
 public:
  virtual ~TransformWorker() = default;
  /// Makes the sample from the record, in place. Returns a bad `Status` with the reason if this
  /// record cannot be made; an `Error` (`bad_record`) counts as the same. Any other exception ends
  /// the run. Draws only from `random`, so that the sample is a pure function of record, seed and
  /// position.
  virtual Status make(const Record& record, Random& random, Sample& sample) = 0;
  /// Makes all samples of `source`, as `make` makes each: one after the other, unless a worker that
  /// makes several in turn overrides it. That one pauses a sample (`Sample::pause`) while it works
  /// at another one.
  virtual void make_in_turn(SampleSource& source);
};

/// What of a transform's samples follows from their records alone, whatever seed and position are,
/// so that it can be kept in memory for the next epochs (`PipelineOptions::cache_bytes`).
struct FixedPart {
  /// Bytes of each record, the same number for all; 0 = there is no such part.
  std::size_t bytes = 0;
  /// Of everything that decides what they are: transforms with one fingerprint share what is kept.
  std::uint64_t fingerprint = 0;
  /// If there is no such part, why: a clause for people, "the recipe's ... is random".
  std::string why_none{};
};

/// What turns records into samples. Immutable; all methods may be called from any thread at once.
class Transform {
 public:
  virtual ~Transform() = default;
  /// The fields that its workers fill.
  virtual const SampleSpec& spec() const = 0;
  /// Names of the stages whose time it tells apart, at least one; the report shows them.
  virtual std::vector<std::string> stages() const { return {"transform"}; }
  /// Of everything that decides what a sample is made of: transforms that differ in it make other
  /// samples of the same records. It goes into a run's `State`; none, the default, is not compared.
  virtual std::optional<std::uint64_t> fingerprint() const { return std::nullopt; }
  /// What it makes of records, for the report: an image transform's recipe, as JSON.
  virtual std::string description() const { return {}; }
  /// What people call that which the fingerprint is of: "recipe" for an image transform.
  virtual std::string fingerprint_of() const { return "transform"; }
  /// What is done to batches of its samples, unless `PipelineOptions::batch_transform` says
  /// otherwise; null, the default, if nothing is. Its fingerprint is part of this transform's.
  virtual std::shared_ptr<const BatchTransform> batch_transform() const { return nullptr; }
  /// What its workers take from the cache and make in it (`Sample::cached`); none by default. A
  /// transform that wraps another one may tell that one's.
  virtual FixedPart fixed_part() const { return {.why_none = "the transform has none to keep"}; }
  /// Returns the transform that a pipeline over `dataset` uses in place of this one; null, the
  /// default: this one. A transform that wraps another one may ask that one. May read records.
  virtual std::shared_ptr<const Transform> fitted_to(const Dataset& dataset) const;
  /// How many samples a worker may have in the making at once; 1, the default, for a worker that
  /// does not override `make_in_turn`. At most 2 are given.
  virtual std::size_t samples_at_once() const { return 1; }
  /// A worker for the calling thread, which keeps it for itself. The transform outlives its
  /// workers.
  virtual std::unique_ptr<TransformWorker> make_worker() const = 0;
};

}  // namespace millrace
