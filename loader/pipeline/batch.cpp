// SPDX-License-Identifier: Apache-2.0
#include <millrace/batch.h>

#include <algorithm>
#include <utility>

#include "pipeline/desk.h"

namespace millrace {

Batch::Batch(const Batch& other) : desk_(other.desk_), lease_(other.lease_) {
  if (lease_ != nullptr) lease_->shares.fetch_add(1, std::memory_order_relaxed);
}

Batch::Batch(Batch&& other) noexcept
    : desk_(std::move(other.desk_)), lease_(std::exchange(other.lease_, nullptr)) {}

Batch& Batch::operator=(Batch other) noexcept {
  std::swap(desk_, other.desk_);
  std::swap(lease_, other.lease_);
  return *this;
}

Batch::~Batch() {
  if (lease_ != nullptr && lease_->shares.fetch_sub(1, std::memory_order_acq_rel) == 1)
    desk_->release(*lease_);
}

Lease& Batch::lease() const {
  if (lease_ == nullptr) throw Error(ErrorCode::invalid_argument, "an empty batch was used");
  return *lease_;
}

BatchTensor Batch::operator[](std::string_view field) const {
  const std::size_t micro_batches = taken();
  if (micro_batches < desk_->filled(*lease_))
    throw Error(
        ErrorCode::invalid_argument,
        "only " + std::to_string(micro_batches) + " of the batch's " +
            std::to_string(desk_->filled(*lease_)) +
            " micro-batches were taken; go through parts() first, or use next() for whole batches");
  const SlotLayout& layout = desk_->layout();
  return {layout.field(lease_->base, layout.spec().index_of(field), 0, lease_->plan.size), *this};
}

std::vector<std::string> Batch::field_names() const {
  lease();
  std::vector<std::string> names;
  for (const FieldSpec& field : desk_->layout().spec().fields()) names.push_back(field.name);
  return names;
}

Batch BatchTensor::share() const {
  lease_->shares.fetch_add(1, std::memory_order_relaxed);
  return {desk_->shared_from_this(), lease_};
}

std::size_t Batch::taken() const { return lease().taken.load(std::memory_order_acquire); }
std::size_t Batch::size() const { return lease().plan.size; }
std::span<const std::uint64_t> Batch::indices() const { return lease().records.indices; }
std::span<const std::uint8_t> Batch::valid() const { return lease().records.valid; }
std::size_t Batch::valid_count() const {
  return static_cast<std::size_t>(std::ranges::count(valid(), std::uint8_t{1}));
}
std::uint64_t Batch::number() const { return lease().plan.number; }
std::uint64_t Batch::epoch() const { return lease().plan.epoch; }
bool Batch::last_in_epoch() const { return lease().plan.last_in_epoch; }
std::size_t Batch::global_size() const { return lease().plan.global_size; }
std::size_t Batch::slot() const { return lease().slot; }
DeviceId Batch::device() const {
  (void)lease();  // throws if the batch is empty
  return desk_->device();
}
State Batch::state_after() const { return desk_->state_at(lease().plan.position_after); }
PartRange Batch::parts() const { return PartRange(*this); }
void Batch::record_stream(Stream& stream) const { desk_->record_stream(lease(), stream); }
void Batch::record_stream(std::shared_ptr<Stream> stream) const {
  if (stream == nullptr) throw Error(ErrorCode::invalid_argument, "the stream is null");
  record_stream(*stream);
  desk_->keep(*lease_, std::move(stream));
}

std::size_t Part::first() const { return batch_->desk_->micro_batches().begin(number_); }

std::size_t Part::size() const {
  return batch_->desk_->micro_batches().samples_of(number_, batch_->size());
}

BatchTensor Part::operator[](std::string_view field) const {
  const SlotLayout& layout = batch_->desk_->layout();
  return {layout.field(batch_->lease().base, layout.spec().index_of(field), first(), size()),
          *batch_};
}

std::span<const std::uint64_t> Part::indices() const {
  return batch_->indices().subspan(first(), size());
}

std::span<const std::uint8_t> Part::valid() const {
  return batch_->valid().subspan(first(), size());
}

Part PartRange::Iterator::operator*() const {
  const Batch& batch = range_->batch_;
  batch.desk_->take(batch.lease(), number_);
  return Part(batch, number_);
}

std::size_t PartRange::size() const { return batch_.desk_->filled(batch_.lease()); }

}  // namespace millrace
