// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/batch_transform.h>
#include <millrace/dataset.h>
#include <millrace/detail/export.h>
#include <millrace/error.h>
#include <millrace/random.h>
#include <millrace/sample_spec.h>

// Threads: a `Transform` is immutable; all its functions may be called from any thread at once. A
// `TransformWorker` is for the thread that made it, and so are the `Sample`s and the `SampleSource`
// that it is given.
//
// Lifetimes: a transform outlives its workers. A `Sample`, its record and its random numbers are
// valid during one call of `make`, or from `SampleSource::next` to `made`.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

// Private types, outside the exported namespace.
namespace millrace {
class SampleContext;
}  // namespace millrace

namespace MILLRACE_API millrace {

/// Memory of one sample in its host slot, to be filled by a `TransformWorker`. It is valid during
/// one call of `make`, or from `SampleSource::next` to `made`.
class Sample {
 public:
  /// Makes a sample outside of a pipeline. `stage_ns[k]` collects the nanoseconds spent in stage k
  /// of `Transform::stages()`; may be empty. Stage 0 begins now.
  Sample(const SampleSpec& spec, std::span<const Tensor> fields,
         std::span<std::uint64_t> stage_ns = {});
  /// Makes the sample of a wrapped transform, as a part of `outer`, the sample of the transform
  /// that wraps it. `fields` are the fields of `outer` that `spec`, the wrapped transform's, has,
  /// in its order. Stage k here is stage `first_stage` + k of `outer`, which enters stage
  /// `first_stage` now.
  Sample(Sample& outer, const SampleSpec& spec, std::span<const Tensor> fields,
         std::size_t first_stage);
  ~Sample();
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;

  /// Memory of field `field` (its position in the `SampleSpec`) of this sample. Every byte must be
  /// written; for a variable field every byte below its length.
  const Tensor& operator[](std::size_t field) const { return fields_[field]; }
  const Tensor& operator[](std::string_view name) const { return fields_[spec_->index_of(name)]; }

  /// Sets the length of a variable field in this sample; it is 0 if not set. Throws `Error`
  /// (`invalid_argument`) for a fixed field or a length above the spec's.
  void set_length(std::size_t field, std::size_t length);

  /// Enters stage `stage` of `Transform::stages()`. Stage 0 has begun when `make` is called. Throws
  /// `Error` (`invalid_argument`) if the stage does not exist.
  void enter_stage(std::size_t stage);
  /// Sets the name of the method that makes the sample, for the report to count. `decoder_name`
  /// must outlive the pipeline, and must be the same pointer each time. The last call counts.
  void set_decoder_name(const char* decoder_name);
  /// The name that was set; null if none was.
  const char* decoder_name() const { return decoder_name_; }
  /// Whether there are record hints: in memory (`PipelineOptions::index_bytes`) or stored beside
  /// the dataset.
  bool has_hints() const;
  /// Returns the hint of this sample's record; may be empty. It was kept before (`keep_hint`) by
  /// any transform of the pipelines that share the dataset and the runtime, or else it is the
  /// stored one (`Dataset::stored_hint`). So a hint must identify its own format and the bytes that
  /// it belongs to. Hints must never change samples. Valid until the next call.
  std::span<const std::byte> hint();
  /// Keeps a hint, in place of the one before, which makes the record's samples faster later. The
  /// last call counts. The hint is dropped if there is no more memory for it, or if making the
  /// sample fails.
  void keep_hint(std::span<const std::byte> hint);
  /// Returns the cached bytes of this sample's record (`PipelineOptions::cache_bytes`): the bytes
  /// of `Transform::cacheable_prefix`, as a worker has made them before. Empty if they are not in
  /// the cache. Valid as long as the sample.
  std::span<const std::byte> cached();
  /// Returns memory in the cache for these bytes if the record is not cached yet. The worker must
  /// write all of them, and then make its sample from them. They are added to the cache if the
  /// sample succeeds. Empty if samples are not cached or if the cache is full.
  std::span<std::byte> room_in_cache();
  /// Pauses the stage's time until `go_on`, while other samples are made. The time so far is
  /// divided among `shared_by` samples. For `TransformWorker::make_in_turn`.
  void pause(unsigned shared_by = 1);
  void go_on();

 private:
  friend class SampleContext;
  Sample(const SampleSpec& spec, std::span<const Tensor> fields, std::span<std::uint64_t> stage_ns,
         SampleContext* context, std::chrono::steady_clock::time_point begin);
  void note_stage();
  void stop(unsigned shared_by = 1);
  void clear_lengths();

  const SampleSpec* spec_;
  std::span<const Tensor> fields_;
  /// For a part of another sample: that sample, and its stage that is stage 0 here.
  Sample* outer_ = nullptr;
  std::size_t first_stage_ = 0;
  /// Null outside of a pipeline.
  SampleContext* context_ = nullptr;
  std::span<std::uint64_t> stage_ns_;
  std::size_t stage_ = 0;
  bool paused_ = false;
  std::chrono::steady_clock::time_point since_;
  const char* decoder_name_ = nullptr;
};

/// Arguments of `TransformWorker::make`.
struct SampleTask {
  const Record& record;
  Random& random;
  Sample& sample;
};

/// Queue of samples for one worker to make. For one thread.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  /// Returns the next sample. It must be returned to `made` or `failed`, and is valid until then.
  /// Up to `Transform::samples_at_once()` samples may be taken at a time. Returns null if no sample
  /// is available now, and at the end. While a taken sample is not returned, null is not final:
  /// that sample may come again.
  virtual SampleTask* next() = 0;
  /// Returns a sample with its result, as `make` returns it. The sample may come again, with
  /// another record.
  virtual void made(SampleTask& task, const Status& status) = 0;
  /// Returns a sample that threw an exception; call it in the handler. Throws if the exception ends
  /// the run.
  virtual void failed(SampleTask& task) = 0;
  /// Calls `make()` and returns the sample with the `Status` or the exception.
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

/// Decoder handles and scratch memory of one thread.
class TransformWorker {
 public:
  virtual ~TransformWorker() = default;
  /// Makes the sample from the record, in place. Returns a bad `Status` with the reason if this
  /// record cannot be made into a sample; an `Error` (`bad_record`) has the same effect. Any other
  /// exception ends the run. It must draw from `random` only, so that the sample is a pure function
  /// of record, seed and position.
  virtual Status make(const Record& record, Random& random, Sample& sample) = 0;
  /// Makes all samples of `source`, each as `make` does. The default makes one after the other. A
  /// worker that interleaves several samples overrides it. It pauses a sample (`Sample::pause`)
  /// while it works on another one.
  virtual void make_in_turn(SampleSource& source);
};

/// The part of a sample that depends on its record alone, not on seed and position. It can be
/// cached for later epochs (`PipelineOptions::cache_bytes`).
struct CacheablePrefix {
  /// Bytes per record, the same number for all records; 0 = nothing can be cached.
  std::size_t bytes = 0;
  /// Fingerprint of everything that determines these bytes. Transforms with the same fingerprint
  /// share the cache.
  std::uint64_t fingerprint = 0;
  /// Reason why nothing can be cached, a clause for people: "the recipe's ... is random".
  std::string why_none{};
};

/// Makes samples from records. Immutable; all methods may be called from any thread at once.
class Transform {
 public:
  virtual ~Transform() = default;
  /// The fields that its workers fill.
  virtual const SampleSpec& spec() const = 0;
  /// Names of the stages that it measures separately, at least one; the report shows them.
  virtual std::vector<std::string> stages() const { return {"transform"}; }
  /// Fingerprint of everything that determines a sample: transforms with different fingerprints
  /// make different samples of the same records. It is part of a run's `State`. nullopt, the
  /// default, is not compared.
  virtual std::optional<std::uint64_t> fingerprint() const { return std::nullopt; }
  /// Description for the report: for an image transform its recipe, as JSON.
  virtual std::string description() const { return {}; }
  /// Name of the fingerprinted object, used in messages: "recipe" for an image transform.
  virtual std::string fingerprint_of() const { return "transform"; }
  /// Transform of whole batches of its samples, unless `PipelineOptions::batch_transform` is set;
  /// null by default. Its fingerprint is part of this transform's.
  virtual std::shared_ptr<const BatchTransform> batch_transform() const { return nullptr; }
  /// The part of its samples that its workers cache (`Sample::cached`); none by default. A
  /// transform that wraps another one may return that one's.
  virtual CacheablePrefix cacheable_prefix() const {
    return {.why_none = "the transform has nothing to cache"};
  }
  /// Returns the transform that a pipeline over `dataset` uses in place of this one. Null, the
  /// default, means this one. A transform that wraps another one may call that one's. May read
  /// records.
  virtual std::shared_ptr<const Transform> fitted_to(const Dataset& dataset) const;
  /// Maximal number of samples that a worker has in progress at once; at most 2 are given. 1, the
  /// default, is for workers that do not override `make_in_turn`.
  virtual std::size_t samples_at_once() const { return 1; }
  /// Makes a worker for the calling thread. The transform must outlive it.
  virtual std::unique_ptr<TransformWorker> make_worker() const = 0;
};

}  // namespace millrace
