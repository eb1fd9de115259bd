// SPDX-License-Identifier: Apache-2.0
// What is done to a whole batch of made samples before it is put on its way: padding to the longest
// sample, packing, mixing samples with each other. `PipelineOptions::batch_transform`, or what a
// `Transform` brings along.
//
// Threads: all methods of a `BatchTransform` may be called from any thread at once. A `MadeBatch`
// is for the one call that it is given to.
// Lifetimes: a pipeline shares the ownership of its batch transform.
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

/// The samples of a batch, all made, in their host slot, before anything is copied.
class MadeBatch {
 public:
  /// `fields` are those of `spec` in its order, each [samples, ...]; `indices` and `valid` have as
  /// many elements.
  MadeBatch(const SampleSpec& spec, std::vector<Tensor> fields,
            std::span<const std::uint64_t> indices, std::span<const std::uint8_t> valid)
      : spec_(&spec), fields_(std::move(fields)), indices_(indices), valid_(valid) {}

  /// How many samples there are, at least one: an epoch's last batch may be shorter than others.
  std::size_t size() const { return indices_.size(); }
  /// A field of all samples, [size(), ...], to be read and changed; the length of a variable field
  /// NAME is the field "NAME.length" (uint32, [size()]). Throws `Error` (`not_found`, the message
  /// lists the names there are).
  const Tensor& operator[](std::string_view name) const { return fields_[spec_->index_of(name)]; }
  /// The record of each sample.
  std::span<const std::uint64_t> indices() const { return indices_; }
  /// 0 for a sample that is marked as not valid: one of a bad record is all zeros.
  std::span<const std::uint8_t> valid() const { return valid_; }

 private:
  const SampleSpec* spec_;
  std::vector<Tensor> fields_;
  std::span<const std::uint64_t> indices_;
  std::span<const std::uint8_t> valid_;
};

/// Changes batches in place, on a worker, once all samples of one are made. The pipeline needs the
/// whole batch for it, so it has one micro-batch.
class BatchTransform {
 public:
  virtual ~BatchTransform() = default;
  /// The fields that it adds to those of the samples, which are zero when `run` is called. Throws
  /// `Error` (`invalid_argument`) if it cannot be run on such samples.
  virtual std::vector<FieldSpec> fields(const SampleSpec& samples) const {
    (void)samples;
    return {};
  }
  /// What reports and traces call the time that it takes, for each batch.
  virtual std::string stage() const { return "batch"; }
  /// Of everything that decides what it makes, for the run's `State`; see
  /// `Transform::fingerprint`.
  virtual std::optional<std::uint64_t> fingerprint() const { return std::nullopt; }
  /// Changes the batch. It draws only from `random`, which is the batch's own: it follows from the
  /// seed and the global position of the first sample. So batches are the same for any number of
  /// workers; ranks have different samples in theirs, and draw each for itself. What lies beyond
  /// the length of a variable field is zeroed afterwards. An exception ends the run.
  virtual void run(MadeBatch& batch, Random& random) const = 0;
};

}  // namespace millrace
