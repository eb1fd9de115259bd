// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/batch_transform.h>
#include <millrace/dataset.h>
#include <millrace/detail/export.h>
#include <millrace/error.h>
#include <millrace/random.h>
#include <millrace/sample_spec.h>

// Threads: a `Transform` is immutable; all its functions may be called by several threads at the
// same time. A `TransformWorker` is for the thread that made it. The `Sample`s and the
// `SampleSource` of a worker are for its thread, too.
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

/// Memory of one sample in its host slot. A `TransformWorker` fills it. It is valid during one call
/// of `make`, or from `SampleSource::next` to `made`.
class Sample {
 public:
  /// Makes a sample outside of a pipeline. `stage_ns[k]` collects the nanoseconds spent in stage k
  /// of `Transform::stages()`; `stage_ns` may be empty. Stage 0 begins now.
  Sample(const SampleSpec& spec, std::span<const Tensor> fields,
         std::span<std::uint64_t> stage_ns = {});
  /// Makes the sample of a wrapped transform. `outer` is the sample of the transform that wraps it;
  /// both use the same memory. `spec` is the spec of the wrapped transform. `fields` are the fields
  /// of `outer` that are in `spec`, in the order of `spec`. Stage k of this sample is stage
  /// `first_stage` + k of `outer`. `outer` enters stage `first_stage` now.
  Sample(Sample& outer, const SampleSpec& spec, std::span<const Tensor> fields,
         std::size_t first_stage);
  ~Sample();
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;

  /// Memory of a field of this sample. `field` is the field's position in the `SampleSpec`. Every
  /// byte must be written; in a variable field, every byte below its length.
  const Tensor& operator[](std::size_t field) const { return fields_[field]; }
  const Tensor& operator[](std::string_view name) const { return fields_[spec_->index_of(name)]; }

  /// Sets the length of a variable field in this sample; a length that is not set is 0. Throws
  /// `Error` (`invalid_argument`) for a fixed field or a length above the spec's.
  void set_length(std::size_t field, std::size_t length);

  /// Returns memory for `bytes` bytes of input, for a field whose first device stage takes packed
  /// inputs (`DeviceStage::packed`). It is aligned to `DeviceStage::input_unit`. The worker then
  /// writes the input to this memory instead of writing the field. If the worker calls this
  /// function again, the new memory replaces the earlier memory. The result is empty if the worker
  /// must write the field: the device could not make this sample, or the micro-batch's other
  /// samples leave no room. Whether there is room depends on the workers' timing. So the device's
  /// result for the input must equal the bytes that the worker would write. Each input counts as at
  /// least `least` bytes of the micro-batch's room, so that a stage that needs scratch for each
  /// input can limit the number of inputs. Throws `Error` (`invalid_argument`) for another field.
  std::span<std::byte> packed_room(std::size_t field, std::size_t bytes, std::size_t least = 0);

  /// Enters stage `stage` of `Transform::stages()`. Stage 0 has begun when `make` is called. Throws
  /// `Error` (`invalid_argument`) if the stage does not exist.
  void enter_stage(std::size_t stage);
  /// Sets the name of the decoder that makes the sample. The report counts samples by this name.
  /// `decoder_name` must outlive the pipeline. The same name must be the same pointer each time. If
  /// it is set again, the last name is used.
  void set_decoder_name(const char* decoder_name);
  /// The name that was set; null by default.
  const char* decoder_name() const { return decoder_name_; }
  /// Whether the run uses record hints. A hint is data about a record, such as a JPEG's seek index.
  /// With it, samples of that record are made faster. Hints are in memory
  /// (`PipelineOptions::index_bytes`) or stored beside the dataset (`Dataset::stored_hint`).
  bool has_hints() const;
  /// Returns the hint of this sample's record; may be empty. It may come from any transform of the
  /// pipelines that share dataset and runtime (`keep_hint`). If none of them kept a hint, it is the
  /// stored one (`Dataset::stored_hint`). So a hint must identify its format and the bytes that it
  /// was made for. Hints must never change samples. The result is valid until the next call.
  std::span<const std::byte> hint();
  /// Keeps a hint that makes the record's later samples faster. It replaces the record's earlier
  /// hint, including one that an earlier call kept for this sample. The hint is dropped if no
  /// memory is left for it, or if making the sample fails.
  void keep_hint(std::span<const std::byte> hint);
  /// Returns the cached bytes of this sample's record (`PipelineOptions::cache_bytes`). They are
  /// the bytes of `Transform::cacheable_prefix`, as a worker made them earlier. The result is empty
  /// if the record is not cached. It is valid as long as the sample.
  std::span<const std::byte> cached();
  /// For a record for which `cached` returned nothing: returns memory in the cache for the bytes
  /// that `cached` will return later. The worker must write all these bytes, and then make its
  /// sample from them. They are added to the cache if the sample succeeds. The result is empty if
  /// samples are not cached or if the cache is full.
  std::span<std::byte> room_in_cache();
  /// Returns this sample's record in its recoded form (`Transform::recoded_form`). The result is
  /// empty if the form is not in the cache. It is valid as long as the sample.
  std::span<const std::byte> recoded();
  /// Whether the worker should make the recoded form of this sample's record. True if the run
  /// caches recoded forms, no worker has tried this record yet, and the cache has room.
  /// `stored_bytes` is the size of the stored data to recode.
  bool wants_recoded(std::size_t stored_bytes) const;
  /// Adds a copy of the record's recoded form to the cache if the sample succeeds. An empty `form`
  /// means that the record has no recoded form; no worker then tries it again. `form` must stay
  /// valid until the sample is given back. A later call for the same sample replaces the form of
  /// this call.
  void keep_recoded(std::span<const std::byte> form);
  /// Stops the clock of the current stage until `go_on`, while the worker makes other samples.
  /// `shared_by` is the number of samples that shared the worker's time since the clock started,
  /// this one included. An equal part of that time is added to this sample's stage. For
  /// `TransformWorker::make_interleaved`.
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
  /// For the sample of a wrapped transform: the sample of the transform that wraps it. Else null.
  Sample* outer_ = nullptr;
  /// Number that this sample's stage 0 has in `outer_`.
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
  /// Returns the next sample. The worker gives it back by `made` or `failed`; it is valid until
  /// then. The worker may hold up to `Transform::samples_at_once()` samples at a time. Returns null
  /// if no sample is available now, and at the end. If the worker then holds samples, it must give
  /// them back and call `next` again. That call may return one of them with another record. If the
  /// worker holds no samples when `next` returns null, all samples are made.
  virtual SampleTask* next() = 0;
  /// Gives a sample back to the source, with the `Status` that `make` returned for it. `next` may
  /// return the sample again with another record.
  virtual void made(SampleTask& task, const Status& status) = 0;
  /// Gives back a sample whose making threw an exception. Call it in the exception's handler.
  /// Throws if the exception ends the run.
  virtual void failed(SampleTask& task) = 0;
  /// Calls `make()` and gives the sample back, with the `Status` or the exception.
  template <typename Make>
  void make_and_return(SampleTask& task, const Make& make) {
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
  /// exception ends the run. All random numbers must come from `random`, so that the sample is a
  /// pure function of record, seed and position.
  virtual Status make(const Record& record, Random& random, Sample& sample) = 0;
  /// Makes all samples of `source`, each as `make` does. The default makes them one by one. A
  /// worker that interleaves several samples overrides this function. It pauses a sample
  /// (`Sample::pause`) while it works on another one.
  virtual void make_interleaved(SampleSource& source);
};

/// The part of a sample that depends only on its record, not on seed and position. It can be cached
/// for later epochs (`PipelineOptions::cache_bytes`).
struct CacheablePrefix {
  /// Bytes per record, the same number for all records; 0 = nothing can be cached.
  std::size_t bytes = 0;
  /// Fingerprint of everything that determines these bytes. Transforms with the same fingerprint
  /// share the cache.
  std::uint64_t fingerprint = 0;
  /// Reason why nothing can be cached, as a clause for messages: "the recipe's ... is random".
  std::string why_none{};
};

/// A form of records from which a transform makes the same samples in less time. It can be cached
/// (`PipelineOptions::cache_bytes`), whether or not samples are random.
struct RecodedForm {
  /// Fingerprint of the form. Transforms with the same fingerprint share the cache.
  std::uint64_t fingerprint = 0;
  /// Upper bound on the memory in bytes that a worker holds to make the form, in addition to
  /// `Transform::scratch_limit`.
  std::size_t scratch_bytes = 0;
};

/// Makes samples from records. Immutable; all methods may be called by several threads at the same
/// time.
class Transform {
 public:
  virtual ~Transform() = default;
  /// The fields that its workers fill.
  virtual const SampleSpec& spec() const = 0;
  /// Names of the stages that it measures separately, at least one; the report shows them.
  virtual std::vector<std::string> stages() const { return {"transform"}; }
  /// Fingerprint of everything that determines a sample: transforms with the same fingerprint make
  /// the same samples of the same records. The fingerprint is part of a run's `State`. With
  /// nullopt, the default, states are compared without the transform.
  virtual std::optional<std::uint64_t> fingerprint() const { return std::nullopt; }
  /// Description for the report: for an image transform its recipe, as JSON.
  virtual std::string description() const { return {}; }
  /// Name of the fingerprinted object, used in messages: "recipe" for an image transform.
  virtual std::string name_in_messages() const { return "transform"; }
  /// Transform of whole batches of its samples; null by default. `PipelineOptions::batch_transform`
  /// replaces it. This transform's fingerprint includes that of the batch transform.
  virtual std::shared_ptr<const BatchTransform> batch_transform() const { return nullptr; }
  /// The part of its samples that its workers cache (`Sample::cached`); none by default. A
  /// transform that wraps another one may return the prefix of the wrapped one.
  virtual CacheablePrefix cacheable_prefix() const {
    return {.why_none = "the transform has nothing to cache"};
  }
  /// The form of records that its workers cache (`Sample::recoded`); nullopt by default. It is not
  /// used if samples have a cacheable prefix.
  virtual std::optional<RecodedForm> recoded_form() const { return std::nullopt; }
  /// Returns a transform that is fitted to the records of `dataset`. A pipeline over `dataset` uses
  /// it in place of this one. Null, the default, means that the pipeline uses this one. May read
  /// records. A transform that wraps another one may call `fitted_to` of the wrapped one.
  virtual std::shared_ptr<const Transform> fitted_to(const Dataset& dataset) const;
  /// Upper bound on the memory in bytes, apart from slots, that `workers` workers of this transform
  /// hold at once. 0, the default, means unknown. The report states it
  /// (`MemoryReport::scratch_limit_bytes`).
  virtual std::size_t scratch_limit(unsigned /*workers*/) const { return 0; }
  /// Maximal number of samples that a worker can have in progress at once. Values above 2 count as
  /// 2. The default, 1, is for workers that do not override `make_interleaved`.
  virtual std::size_t samples_at_once() const { return 1; }
  /// Makes a worker for the calling thread. The transform must outlive it.
  virtual std::unique_ptr<TransformWorker> make_worker() const = 0;
};

}  // namespace millrace
