// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/detail/export.h>
#include <millrace/error.h>
#include <millrace/random.h>
#include <millrace/sample_spec.h>

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

/// One sample's place in its host slot, to be filled by a `TransformWorker`. Lives for the one call
/// of `make`.
class Sample {
 public:
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
  /// `make` is called.
  void enter_stage(std::size_t stage);
  /// Ends the current stage's time; the pipeline calls it after `make`.
  void finish();
  /// From here on `profiler` is told of the stages, by `names` and as those of batch `batch`, until
  /// `finish()` or the sample's end. The pipeline calls it before `make`.
  void show(ProfilerRanges& profiler, std::span<const char* const> names, std::uint64_t batch);

 private:
  void note_stage();
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
  std::chrono::steady_clock::time_point since_;
  /// None: nobody is told.
  ProfilerRanges* profiler_ = nullptr;
  std::span<const char* const> names_;
  std::uint64_t batch_ = 0;
  bool in_range_ = false;
};

/// One thread's decoder handles and scratch.
class TransformWorker {
 public:
  virtual ~TransformWorker() = default;
  /// Makes the sample from the record, in place. A record that cannot be made is a bad `Status`,
  /// with the reason; an exception ends the run. Draws only from `random`, so that the sample is a
  /// pure function of record, seed and position.
  virtual Status make(const Record& record, Random& random, Sample& sample) = 0;
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
  /// What people call that which the fingerprint is of: "recipe" for an image transform.
  virtual std::string fingerprint_of() const { return "transform"; }
  /// A worker for the calling thread, which keeps it for itself. The transform outlives its
  /// workers.
  virtual std::unique_ptr<TransformWorker> make_worker() const = 0;
};

}  // namespace millrace
