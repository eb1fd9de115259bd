// SPDX-License-Identifier: Apache-2.0
// A batch of samples and its micro-batches, as `Pipeline::next` returns them.
//
// Lifetimes: a batch keeps its slot's memory alive, but not the dataset or the transform. It may
// outlive its pipeline. Streams that a batch is used on must outlive it, unless the batch keeps
// them (`Batch::record_stream`).
// Threads: two threads must not use one `Batch` object at once. They may use copies of it, which
// share the slot. Any thread may destroy a batch.
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

// Private types, outside the exported namespace.
namespace millrace {
class BatchConsumer;
struct OutputSlot;
}  // namespace millrace

namespace MILLRACE_API millrace {

class BatchTensor;
class MicroBatch;
class MicroBatchRange;

/// A reference-counted handle to the output slot that holds one batch. Copies share the slot. The
/// slot is reused after the last copy is destroyed and the batch's streams have finished all work
/// that they were given until then.
///
/// A batch may outlive its scope and its pipeline. It may be moved or copied to other threads, but
/// two threads must not use one object at once. Streams must outlive the batch unless it keeps them
/// (`record_stream`). Do not destroy the last copy while one of its streams is being captured into
/// a graph: that ends the run with an error. Other copies may be destroyed during a capture.
class Batch {
 public:
  /// An empty batch. `Pipeline::next` returns one after the run's last batch. It can be copied,
  /// reset and converted to `bool`; other calls throw `Error` (`invalid_argument`).
  Batch() = default;
  Batch(const Batch& other);
  Batch(Batch&& other) noexcept;
  Batch& operator=(Batch other) noexcept;
  ~Batch();

  explicit operator bool() const { return output_ != nullptr; }
  /// Releases this object's reference to the slot now.
  void reset() { *this = Batch(); }

  /// A field of all samples, [size(), ...]: one of the transform's fields, "index" (uint64, equal
  /// to `indices()`) or "valid" (uint8, equal to `valid()`). The pipeline adds "index" and "valid"
  /// to the samples, unless the transform has a field of the same name. Throws `Error`: `not_found`
  /// for an unknown name; `invalid_argument` if the batch is delivered in micro-batches and some of
  /// them have not been taken yet.
  BatchTensor operator[](std::string_view field) const;
  /// The names of all fields, in the order of their memory in the slot.
  std::vector<std::string> field_names() const;
  /// The field "image".
  BatchTensor images() const;
  /// The field "label".
  BatchTensor labels() const;

  /// Number of this rank's samples in this batch, including padding. It is the same for all batches
  /// of a run, except the last batch of an epoch. That batch may have fewer samples, and on some
  /// ranks none.
  std::size_t size() const;
  /// Record index of each sample (after replacement of bad records), in host memory. Like
  /// `valid()`, it is complete after all micro-batches were taken.
  std::span<const std::uint64_t> indices() const;
  /// One value per sample, in host memory: 0 for padding and for a bad record (`BadRecords::mark`),
  /// else 1.
  std::span<const std::uint8_t> valid() const;
  /// Number of samples that are valid.
  std::size_t valid_count() const;

  /// Number of the batch in the whole run, from 0. A resumed run continues the count.
  std::uint64_t number() const;
  /// Number of the epoch, from 0. The order defines what an epoch is: see `Order`.
  std::uint64_t epoch() const;
  bool last_in_epoch() const;
  /// Number of samples of this batch over all ranks, without padding. Divide the sum of all ranks'
  /// gradients by it.
  std::size_t global_size() const;
  /// Number of the slot that holds the batch, from 0. The addresses of a slot never change.
  std::size_t slot() const;
  /// The device whose memory holds the fields.
  DeviceId device() const;
  /// State from which a pipeline continues after this batch: `ResumeOptions::from`.
  State state_after() const;

  /// The micro-batches, in order. If the batch is delivered in micro-batches, `*iterator` waits
  /// until that micro-batch is ready.
  MicroBatchRange micro_batches() const;

  /// Declares that the batch is also used on `stream`. The slot is reused only when this stream,
  /// too, has finished all work that it was given before the batch's last copy was destroyed.
  /// Throws `Error` (`invalid_argument`) while the stream is being captured; the run continues.
  void record_stream(Stream& stream) const;
  /// Does the same, and keeps the stream alive until the last copy of the batch is destroyed. If
  /// the batch is the stream's last owner, the thread that destroys that copy also destroys the
  /// stream. The destructor of a `HostStream` waits for the stream's work, so this thread must not
  /// be the stream's own thread.
  void record_stream(std::shared_ptr<Stream> stream) const;

 private:
  friend class BatchTensor;
  friend class BatchConsumer;
  friend class MicroBatch;
  friend class MicroBatchRange;
  Batch(std::shared_ptr<BatchConsumer> consumer, OutputSlot* output)
      : consumer_(std::move(consumer)), output_(output) {}
  /// Throws `Error` (`invalid_argument`) for an empty batch.
  OutputSlot& output() const;
  std::size_t micro_batches_taken() const;

  std::shared_ptr<BatchConsumer> consumer_;
  OutputSlot* output_ = nullptr;
};

/// A field of a batch or micro-batch. Like any `Tensor` it is a view: it is valid as long as a copy
/// of the batch exists. Functions that pass it to other libraries (`to_dlpack`, `to_torch`) take a
/// copy of the batch from it.
class BatchTensor : public Tensor {
 public:
  /// Returns a further copy of its batch, which keeps the slot's memory.
  Batch share() const;

 private:
  friend class Batch;
  friend class MicroBatch;
  BatchTensor(const Tensor& tensor, const Batch& batch)
      : Tensor(tensor), consumer_(batch.consumer_.get()), output_(batch.output_) {}
  BatchConsumer* consumer_;
  OutputSlot* output_;
};

inline BatchTensor Batch::images() const { return (*this)["image"]; }
inline BatchTensor Batch::labels() const { return (*this)["label"]; }

/// A micro-batch: samples [first(), first() + size()) of a batch. It is valid as long as the
/// `MicroBatchRange` that it was taken from; a range-based for loop keeps the range alive. Its
/// tensors and spans are valid as long as the batch.
class MicroBatch {
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
  friend class MicroBatchRange;
  MicroBatch(const Batch& batch, std::size_t number) : batch_(&batch), number_(number) {}
  const Batch* batch_;
  std::size_t number_;
};

/// The micro-batches of a batch, for a range-based for loop. Holds a copy of the batch.
class MicroBatchRange {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = MicroBatch;
    using difference_type = std::ptrdiff_t;
    /// Makes the batch's stream wait for the micro-batch. Blocks until its copy to the device is
    /// enqueued; without a stream, until its data can be read. Throws `Error` (`invalid_argument`)
    /// while the stream is being captured; the micro-batch can be taken later.
    MicroBatch operator*() const;
    Iterator& operator++() {
      ++number_;
      return *this;
    }
    void operator++(int) { ++number_; }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.number_ == b.number_; }

   private:
    friend class MicroBatchRange;
    Iterator(const MicroBatchRange* range, std::size_t number) : range_(range), number_(number) {}
    const MicroBatchRange* range_;
    std::size_t number_;
  };

  Iterator begin() const { return Iterator(this, 0); }
  Iterator end() const { return Iterator(this, size()); }
  /// Number of micro-batches that have samples.
  std::size_t size() const;

 private:
  friend class Batch;
  explicit MicroBatchRange(Batch batch) : batch_(std::move(batch)) {}
  Batch batch_;
};

}  // namespace millrace
