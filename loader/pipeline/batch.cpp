// SPDX-License-Identifier: Apache-2.0
#include <millrace/batch.h>

#include <algorithm>
#include <utility>

#include "pipeline/batch_consumer.h"

namespace millrace {

Batch::Batch(const Batch& other) : consumer_(other.consumer_), output_(other.output_) {
  if (output_ != nullptr) output_->shares.fetch_add(1, std::memory_order_relaxed);
}

Batch::Batch(Batch&& other) noexcept
    : consumer_(std::move(other.consumer_)), output_(std::exchange(other.output_, nullptr)) {}

Batch& Batch::operator=(Batch other) noexcept {
  std::swap(consumer_, other.consumer_);
  std::swap(output_, other.output_);
  return *this;
}

Batch::~Batch() {
  if (output_ != nullptr && output_->shares.fetch_sub(1, std::memory_order_acq_rel) == 1)
    consumer_->release(*output_);
}

OutputSlot& Batch::output() const {
  if (output_ == nullptr) throw Error(ErrorCode::invalid_argument, "an empty batch was used");
  return *output_;
}

BatchTensor Batch::operator[](std::string_view field) const {
  const std::size_t micro_batches = micro_batches_taken();
  if (micro_batches < consumer_->filled(*output_))
    throw Error(ErrorCode::invalid_argument,
                "only " + std::to_string(micro_batches) + " of the batch's " +
                    std::to_string(consumer_->filled(*output_)) +
                    " micro-batches were taken; go through micro_batches() first, or use next() "
                    "for whole batches");
  const SlotLayout& layout = consumer_->layout();
  return {layout.field(output_->base, layout.spec().index_of(field), 0, output_->plan.size), *this};
}

std::vector<std::string> Batch::field_names() const {
  output();
  std::vector<std::string> names;
  for (const FieldSpec& field : consumer_->layout().spec().fields()) names.push_back(field.name);
  return names;
}

Batch BatchTensor::share() const {
  output_->shares.fetch_add(1, std::memory_order_relaxed);
  return {consumer_->shared_from_this(), output_};
}

std::size_t Batch::micro_batches_taken() const {
  return output().micro_batches_taken.load(std::memory_order_acquire);
}
std::size_t Batch::size() const { return output().plan.size; }
std::span<const std::uint64_t> Batch::indices() const { return output().records.indices; }
std::span<const std::uint8_t> Batch::valid() const { return output().records.valid; }
std::size_t Batch::valid_count() const {
  return static_cast<std::size_t>(std::ranges::count(valid(), std::uint8_t{1}));
}
std::uint64_t Batch::number() const { return output().plan.number; }
std::uint64_t Batch::epoch() const { return output().plan.epoch; }
bool Batch::last_in_epoch() const { return output().plan.last_in_epoch; }
std::size_t Batch::global_size() const { return output().plan.global_size; }
std::size_t Batch::slot() const { return output().slot; }
DeviceId Batch::device() const {
  (void)output();  // throws if the batch is empty
  return consumer_->device();
}
State Batch::state_after() const {
  const BatchPlan& plan = output().plan;
  return consumer_->state_at({plan.position_after, plan.window_after});
}
MicroBatchRange Batch::micro_batches() const { return MicroBatchRange(*this); }
void Batch::record_stream(Stream& stream) const { consumer_->record_stream(output(), stream); }
void Batch::record_stream(std::shared_ptr<Stream> stream) const {
  if (stream == nullptr) throw Error(ErrorCode::invalid_argument, "the stream is null");
  record_stream(*stream);
  consumer_->own_stream(*output_, std::move(stream));
}

std::size_t MicroBatch::first() const { return batch_->consumer_->micro_batches().begin(number_); }

std::size_t MicroBatch::size() const {
  return batch_->consumer_->micro_batches().samples_of(number_, batch_->size());
}

BatchTensor MicroBatch::operator[](std::string_view field) const {
  const SlotLayout& layout = batch_->consumer_->layout();
  return {layout.field(batch_->output().base, layout.spec().index_of(field), first(), size()),
          *batch_};
}

std::span<const std::uint64_t> MicroBatch::indices() const {
  return batch_->indices().subspan(first(), size());
}

std::span<const std::uint8_t> MicroBatch::valid() const {
  return batch_->valid().subspan(first(), size());
}

MicroBatch MicroBatchRange::Iterator::operator*() const {
  const Batch& batch = range_->batch_;
  batch.consumer_->await_micro_batch(batch.output(), number_);
  return MicroBatch(batch, number_);
}

std::size_t MicroBatchRange::size() const { return batch_.consumer_->filled(batch_.output()); }

}  // namespace millrace
