// SPDX-License-Identifier: Apache-2.0
// A batch holds its slot's memory and what orders that memory's reuse, but neither the dataset nor
// the transform; it may outlive its pipeline, and is let go by any thread. One object is not for
// two threads at once; copies, which share the slot, are. Streams that a batch is used on outlive
// it, unless it keeps them. In words a part of a batch is a micro-batch; `Part`, `PartRange` and
// `parts()` are the names that code has for it.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/device.h>
#include <millrace/state.h>
#include <millrace/tensor.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Private, so outside of what is shown.
namespace millrace {
class Desk;
struct Lease;
}  // namespace millrace

namespace MILLRACE_API millrace {

class BatchTensor;
class Part;
class PartRange;

/// A counted lease of a slot that holds one batch. Copies share the lease; when the last one goes,
/// the slot's reuse is ordered behind everything the batch's streams were given until then. A batch
/// may outlive its scope and its pipeline, and may be moved to or copied for other threads; one
/// object is not for two threads at once. Streams that it does not keep must outlive it. While one
/// of them is being captured into a graph, the last copy must not go, which ends the run with an
/// error; others may.
class Batch {
 public:
  /// No batch: what `Pipeline::next` returns after the last one. Any use of it but copies, `reset`
  /// and the test for true throws `Error` (`invalid_argument`).
  Batch() = default;
  Batch(const Batch& other);
  Batch(Batch&& other) noexcept;
  Batch& operator=(Batch other) noexcept;
  ~Batch();

  explicit operator bool() const { return lease_ != nullptr; }
  /// Gives up this object's share now.
  void reset() { *this = Batch(); }

  /// A field of all samples, [size(), ...]: one of the transform's, "index" (uint64, as
  /// `indices()`) or "valid" (uint8, as `valid()`); these two travel with the samples unless the
  /// transform has such a field itself. Throws `Error`: `not_found` for an unknown name,
  /// `invalid_argument` while micro-batches of a batch that comes in parts have not been taken
  /// yet.
  BatchTensor operator[](std::string_view field) const;
  /// The names of all fields, in the order in which they lie in the slot.
  std::vector<std::string> field_names() const;
  /// The field "image".
  BatchTensor images() const;
  /// The field "label".
  BatchTensor labels() const;

  /// This rank's samples in this batch, padding included. All batches of a run have as many, but an
  /// epoch's last one may have fewer, and none on a rank that has no share of it.
  std::size_t size() const;
  /// The record of each sample (after replacement), in host memory. As `valid`, complete once all
  /// micro-batches were taken.
  std::span<const std::uint64_t> indices() const;
  /// One per sample, in host memory: 1, or 0 for a marked bad record and for padding.
  std::span<const std::uint8_t> valid() const;
  /// Samples that are valid.
  std::size_t valid_count() const;

  /// The batch's number in the run, from 0 at position 0.
  std::uint64_t number() const;
  /// From 0. What an epoch is depends on the order: see `Order`.
  std::uint64_t epoch() const;
  bool last_in_epoch() const;
  /// Samples of this batch over all ranks, padding not counted: what the sum of all ranks'
  /// gradients is divided by.
  std::size_t global_size() const;
  /// Which slot it lies in, from 0; a slot's addresses never change.
  std::size_t slot() const;
  /// Whose memory its fields lie in.
  DeviceId device() const;
  /// Where a pipeline goes on that has had this batch: `ResumeOptions::from`.
  State state_after() const;

  /// The micro-batches, in order. For a batch that comes in parts, going to the next one waits
  /// until it is made.
  PartRange parts() const;

  /// The batch is used on this stream too: its slot is not reused before the work given to the
  /// stream until the last copy of the batch goes. Throws `Error` (`invalid_argument`) while the
  /// stream is being captured; the run goes on.
  void record_stream(Stream& stream) const;
  /// The same, and the batch keeps the stream until the last copy goes. Where nobody else has it
  /// then, it ends on that copy's thread; of a `HostStream` this waits for its work, so the thread
  /// must not be its own.
  void record_stream(std::shared_ptr<Stream> stream) const;

 private:
  friend class BatchTensor;
  friend class Desk;
  friend class Part;
  friend class PartRange;
  Batch(std::shared_ptr<Desk> desk, Lease* lease) : desk_(std::move(desk)), lease_(lease) {}
  /// Throws `Error` (`invalid_argument`) for an empty batch.
  Lease& lease() const;
  std::size_t taken() const;

  std::shared_ptr<Desk> desk_;
  Lease* lease_ = nullptr;
};

/// A field of a batch or micro-batch. A view as any `Tensor`: as long as it is used, someone must
/// hold a share of the batch. It also knows its batch, for what hands it to other libraries
/// (`to_dlpack`, `to_torch`).
class BatchTensor : public Tensor {
 public:
  /// A further share of its batch.
  Batch share() const;

 private:
  friend class Batch;
  friend class Part;
  BatchTensor(const Tensor& tensor, const Batch& batch)
      : Tensor(tensor), desk_(batch.desk_.get()), lease_(batch.lease_) {}
  Desk* desk_;
  Lease* lease_;
};

inline BatchTensor Batch::images() const { return (*this)["image"]; }
inline BatchTensor Batch::labels() const { return (*this)["label"]; }

/// A micro-batch: samples [first(), first() + size()) of a batch. Valid as long as the `PartRange`
/// that it was taken from, which in a range-based for loop is the loop's; its tensors and spans are
/// valid as long as the batch.
class Part {
 public:
  /// A field of its samples, [size(), ...].
  BatchTensor operator[](std::string_view field) const;
  BatchTensor images() const { return (*this)["image"]; }
  BatchTensor labels() const { return (*this)["label"]; }
  /// Its number in the batch, from 0.
  std::size_t number() const { return number_; }
  std::size_t first() const;
  std::size_t size() const;
  std::span<const std::uint64_t> indices() const;
  std::span<const std::uint8_t> valid() const;

 private:
  friend class PartRange;
  Part(const Batch& batch, std::size_t number) : batch_(&batch), number_(number) {}
  const Batch* batch_;
  std::size_t number_;
};

/// The micro-batches of a batch, for a range-based for loop. Holds a share of the batch.
class PartRange {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Part;
    using difference_type = std::ptrdiff_t;
    /// Makes the batch's stream wait for the micro-batch; blocks until that is on its way to the
    /// device, or without a stream until it can be read. Throws `Error` (`invalid_argument`) while
    /// the stream is being captured; the micro-batch can be taken later.
    Part operator*() const;
    Iterator& operator++() {
      ++number_;
      return *this;
    }
    void operator++(int) { ++number_; }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.number_ == b.number_; }

   private:
    friend class PartRange;
    Iterator(const PartRange* range, std::size_t number) : range_(range), number_(number) {}
    const PartRange* range_;
    std::size_t number_;
  };

  Iterator begin() const { return Iterator(this, 0); }
  Iterator end() const { return Iterator(this, size()); }
  /// How many micro-batches have samples.
  std::size_t size() const;

 private:
  friend class Batch;
  explicit PartRange(Batch batch) : batch_(std::move(batch)) {}
  Batch batch_;
};

}  // namespace millrace
