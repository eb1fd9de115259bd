// SPDX-License-Identifier: Apache-2.0
// A transform of a whole batch, after its samples are made and before they are copied: padding to
// the longest sample, packing, mixing samples. `PipelineOptions::batch_transform` sets it, or
// `Transform::batch_transform` returns it.
//
// Threads: all methods of a `BatchTransform` may be called by several threads at the same time. A
// `MadeBatch` is valid during the call that receives it. Lifetimes: a pipeline shares ownership of
// its batch transform.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/random.h>
#include <millrace/sample_spec.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace MILLRACE_API millrace {

/// The samples of one batch in their host slot: all are made, none is copied yet.
class MadeBatch {
 public:
  /// `fields` are the fields of `spec` in its order, each [samples, ...]. `indices` and `valid`
  /// have one element per sample.
  MadeBatch(const SampleSpec& spec, std::vector<Tensor> fields,
            std::span<const std::uint64_t> indices, std::span<const std::uint8_t> valid)
      : spec_(&spec), fields_(std::move(fields)), indices_(indices), valid_(valid) {}

  /// Number of samples, at least one. The last batch of an epoch may have fewer than others.
  std::size_t size() const { return indices_.size(); }
  /// A field of all samples, [size(), ...]; it may be read and changed. The lengths of a variable
  /// field NAME are the field "NAME.length" (uint32, [size()]). Throws `Error` (`not_found`; the
  /// message lists the names).
  const Tensor& operator[](std::string_view name) const { return fields_[spec_->index_of(name)]; }
  /// All fields of a sample.
  const SampleSpec& spec() const { return *spec_; }
  /// Record index of each sample.
  std::span<const std::uint64_t> indices() const { return indices_; }
  /// One value per sample: 0 if the sample is marked as not valid. The sample of a bad record is
  /// all zeros.
  std::span<const std::uint8_t> valid() const { return valid_; }

 private:
  const SampleSpec* spec_;
  std::vector<Tensor> fields_;
  std::span<const std::uint64_t> indices_;
  std::span<const std::uint8_t> valid_;
};

/// Changes batches in place, on a worker, after all samples of a batch are made. It needs the whole
/// batch, so `slots.micro_batches` must be 1.
class BatchTransform {
 public:
  virtual ~BatchTransform() = default;
  /// The fields that it adds to those of the samples. They are zero when `run` is called. Throws
  /// `Error` (`invalid_argument`) if it does not support such samples.
  virtual std::vector<FieldSpec> fields(const SampleSpec& samples) const {
    (void)samples;
    return {};
  }
  /// Name of its stage in reports and traces, which measure it for each batch.
  virtual std::string stage() const { return "batch"; }
  /// Fingerprint of everything that determines its result, for the run's `State`; see
  /// `Transform::fingerprint`.
  virtual std::optional<std::uint64_t> fingerprint() const { return std::nullopt; }
  /// Changes the batch. It must draw random numbers from `random` only. That generator is the
  /// batch's own: it depends only on the seed and the global position of the first sample, so
  /// results do not depend on the number of workers. Ranks have different samples, so each rank
  /// draws other numbers. After the call, the pipeline zeroes the bytes beyond the length in
  /// variable fields of the `Transform`. It leaves the fields that the batch transform added as
  /// they are. An exception ends the run.
  virtual void run(MadeBatch& batch, Random& random) const = 0;
};

}  // namespace millrace
