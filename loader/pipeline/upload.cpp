// SPDX-License-Identifier: Apache-2.0
#include "pipeline/upload.h"

#include <millrace/mix_work.h>

#include <algorithm>
#include <utility>

#include "device/profiler_range.h"
#include "pipeline/checked_device.h"

namespace millrace {
namespace {

/// Waits for all work of a stream. Returns false if it has not ended by `deadline`. A device that
/// fails counts as having no work left.
bool drain_stream(Device& device, Stream& stream,
                  std::chrono::steady_clock::time_point deadline) noexcept {
  try {
    const std::unique_ptr<Event> drained = checked_event(device);
    stream.record(*drained);
    while (!drained->wait(std::chrono::milliseconds(5)))
      if (std::chrono::steady_clock::now() >= deadline) return false;
  } catch (...) {
    try {
      stream.synchronize();  // no event can be used, but work may still run
    } catch (...) {
      // The device failed: see above.
    }
  }
  return true;
}

}  // namespace

Upload::Upload(std::shared_ptr<Device> device, const SlotLayout& host, const SlotLayout& batch,
               const BatchFields& fields, const std::optional<Conversion>& conversion,
               std::size_t hosts, std::shared_ptr<HostWorkers> workers)
    : device_(std::move(device)),
      host_(host),
      batch_(batch),
      image_(fields.image()),
      flips_(fields.flips()),
      erases_(fields.erases()),
      mixes_(fields.mixes()),
      workers_(std::move(workers)),
      stages_(*device_, host_, image_, workers_.get()),
      copy_stream_(checked_stream(*device_)) {
  if (!image_ && host_.micro_batches().count == 1) return;
  for (StagingSlot& slot : staging_)
    slot = {checked_device_memory(*device_, host_.bytes()), checked_event(*device_)};
  rounds_.resize(hosts + staging_.size());
  for (Round& round : rounds_) {
    round.arrived = checked_timed_event(*device_);
    for (std::size_t number = 0; number < host_.micro_batches().count; ++number)
      round.conversions.push_back({checked_timed_event(*device_), checked_timed_event(*device_)});
    if (stages_.empty()) continue;
    for (Round::Conversion& conversion : round.conversions) {
      conversion.stage_begin = checked_timed_event(*device_);
      conversion.stage_end = checked_timed_event(*device_);
    }
  }
  if (image_) {
    const Shape& shape = host_.spec().fields()[*image_].shape;
    const std::size_t channels = shape.rank() - 1;  // the axis of the channels
    images_per_sample_ = shape.rank() == 4 ? shape[0] : 1;
    work_ = {.height = shape[channels - 2],
             .width = shape[channels - 1],
             .channels = shape[channels],
             .dtype = conversion->dtype,
             .layout = conversion->layout,
             .mean = conversion->mean,
             .std = conversion->std,
             .workers = workers_.get()};
  }
  convert_stream_ = checked_stream(*device_);
}

std::size_t Upload::staging_bytes() const {
  std::size_t bytes = stages_.bytes();
  for (const StagingSlot& slot : staging_) bytes += slot.memory.bytes();
  return bytes;
}

SlotLayout::Piece Upload::piece_of(const HostSlot& host, std::size_t micro_batch) const {
  return host_.micro_batch(micro_batch,
                           host_.micro_batches().samples_of(micro_batch, host.plan.size),
                           host.packed[micro_batch].used());
}

std::size_t Upload::copy(HostSlot& host, std::size_t micro_batch) {
  const SlotLayout::Piece piece = piece_of(host, micro_batch);
  if (micro_batch == 0) copy_stream_->wait(*staging().converted);
  copy_stream_->record(*host.copies[micro_batch].begin);
  if (piece.bytes > 0)
    copy_stream_->copy(staging().memory.data() + piece.offset, host.memory.data() + piece.offset,
                       piece.bytes);
  copy_stream_->record(*host.copies[micro_batch].end);
  const std::size_t samples = host_.micro_batches().samples_of(micro_batch, host.plan.size);
  if (stages_.empty()) return piece.bytes;
  const ProfilerRange range(device_->profiler(), stages_.first_name(), host.plan.number);
  make_room_for_round(micro_batch);
  convert_stream_->wait(*host.copies[micro_batch].end);
  const Round::Conversion& conversion = round().conversions[micro_batch];
  convert_stream_->record(*conversion.stage_begin);
  if (samples > 0)
    stages_.begin(*convert_stream_, staging().memory.data(),
                  host_.micro_batches().begin(micro_batch), samples);
  convert_stream_->record(*conversion.stage_end);
  return piece.bytes;
}

/// Forgets the oldest round if a new one needs its place. Its end has passed, see `rounds_`.
void Upload::make_room_for_round(std::size_t micro_batch) {
  if (micro_batch == 0 && next_round_ - oldest_round_ == rounds_.size()) ++oldest_round_;
}

std::span<const std::uint8_t> Upload::marked(const HostSlot& host, std::size_t micro_batch) const {
  return stages_.marked(host_.micro_batches().samples_of(micro_batch, host.plan.size));
}

void Upload::copy_others(HostSlot& host, std::size_t micro_batch) {
  const SlotLayout::Piece others = host_.micro_batch(
      micro_batch, host_.micro_batches().samples_of(micro_batch, host.plan.size), 0);
  convert_stream_->copy(staging().memory.data() + others.offset, host.memory.data() + others.offset,
                        others.bytes);
  stages_.record_replaced(*convert_stream_);
}

std::size_t Upload::deliver(HostSlot& host, OutputSlot& output, std::size_t micro_batch) {
  if (staged()) {
    convert(host, output, micro_batch);
    return 0;
  }
  const SlotLayout::Piece piece = piece_of(host, micro_batch);
  for (std::size_t use = 0; micro_batch == 0 && use < output.used; ++use)
    copy_stream_->wait(*output.uses[use].done);
  copy_stream_->record(*host.copies[micro_batch].begin);
  if (piece.bytes > 0)
    copy_stream_->copy(output.base + piece.offset, host.memory.data() + piece.offset, piece.bytes);
  copy_stream_->record(*host.copies[micro_batch].end);
  copy_stream_->record(*output.copied[micro_batch]);
  return piece.bytes;
}

void Upload::convert(HostSlot& host, OutputSlot& output, std::size_t micro_batch) {
  make_room_for_round(micro_batch);
  Round& round = this->round();
  convert_stream_->wait(*host.copies[micro_batch].end);
  if (micro_batch == 0) {
    round.batch = host.plan.number;
    convert_stream_->record(*round.arrived);
    for (std::size_t use = 0; use < output.used; ++use)
      convert_stream_->wait(*output.uses[use].done);
  }
  convert_stream_->record(*round.conversions[micro_batch].begin);
  const std::size_t first = host_.micro_batches().begin(micro_batch);
  const std::size_t count = host_.micro_batches().samples_of(micro_batch, host.plan.size);
  if (count > 0) {
    move_fields(output.base, first, count);
    if (image_) {
      std::byte* const in = staging().memory.data();
      std::byte* const images = stages_.finish(*convert_stream_, in, first, count);
      mix_images(images, in, first, count);
      convert_images(images, in, output.base, first, count);
    }
  }
  convert_stream_->record(*round.conversions[micro_batch].end);
  convert_stream_->record(*output.copied[micro_batch]);
  if (micro_batch + 1 < host_.micro_batches().count) return;
  convert_stream_->record(*staging().converted);
  ++next_round_;
}

/// Copies all fields of samples [first, first + count) but the converted one. In a slot with one
/// micro-batch, fields that have the same distance on the device are copied together with the gaps
/// between them. In other slots, a gap may hold another micro-batch's samples.
void Upload::move_fields(std::byte* base, std::size_t first, std::size_t count) {
  const std::size_t fields = host_.spec().fields().size();
  for (std::size_t field = 0; field < fields;) {
    if (field == image_) {
      ++field;
      continue;
    }
    const std::size_t from = host_.piece(field, first, count).offset;
    const std::size_t to = batch_.piece(field, first, count).offset;
    std::size_t bytes = 0;
    for (; field < fields && field != image_; ++field) {
      const SlotLayout::Piece piece = host_.piece(field, first, count);
      const bool together = host_.micro_batches().count == 1 &&
                            batch_.piece(field, first, count).offset - to == piece.offset - from;
      if (bytes > 0 && !together) break;
      bytes = piece.offset + piece.bytes - from;
    }
    convert_stream_->copy_on_device(base + to, staging().memory.data() + from, bytes);
  }
}

/// Erases and mixes images, before the conversion reads them. Their other fields lie in the staging
/// slot at `in`.
void Upload::mix_images(std::byte* images, std::byte* in, std::size_t first, std::size_t count) {
  if (!erases_ && !mixes_) return;
  const auto at = [&](std::size_t field) { return in + host_.piece(field, first, count).offset; };
  const auto numbers = [&](const std::optional<std::size_t>& field) {
    return field ? reinterpret_cast<const std::int32_t*>(at(*field)) : nullptr;
  };
  convert_stream_->launch(
      MixWork{.images = reinterpret_cast<std::uint8_t*>(images),
              .flips = flips_ ? reinterpret_cast<const std::uint8_t*>(at(*flips_)) : nullptr,
              .erases = numbers(erases_),
              .mixes = numbers(mixes_),
              .samples = count,
              .height = work_.height,
              .width = work_.width,
              .channels = work_.channels,
              .workers = workers_.get()});
}

void Upload::convert_images(const std::byte* images, std::byte* in, std::byte* to,
                            std::size_t first, std::size_t count) {
  ConversionWork work = work_;
  work.source = reinterpret_cast<const std::uint8_t*>(images);
  work.destination = to + batch_.piece(*image_, first, count).offset;
  if (flips_)
    work.flips =
        reinterpret_cast<const std::uint8_t*>(in + host_.piece(*flips_, first, count).offset);
  work.samples = count * images_per_sample_;
  convert_stream_->launch(work);
}

void Upload::take_conversions(std::vector<RunMeter::StreamWork>& into) {
  for (; oldest_round_ < next_round_; ++oldest_round_) {
    const Round& round = rounds_[oldest_round_ % rounds_.size()];
    if (!round.conversions.back().end->complete()) return;
    auto arrived_at = round.arrived->passed_at();
    for (const Round::Conversion& conversion : round.conversions) {
      if (conversion.stage_end != nullptr) {
        const auto stage_began_at = conversion.stage_begin->passed_at();
        const auto stage_ended_at = conversion.stage_end->passed_at();
        if (stage_began_at && stage_ended_at)
          into.push_back({*stage_began_at, *stage_began_at, *stage_ended_at, round.batch,
                          stages_.first_name()});
      }
      const auto began_at = conversion.begin->passed_at();
      const auto ended_at = conversion.end->passed_at();
      if (began_at && ended_at)
        into.push_back({arrived_at.value_or(*began_at), *began_at, *ended_at, round.batch});
      arrived_at.reset();
    }
  }
}

bool Upload::drain(std::chrono::steady_clock::time_point deadline) noexcept {
  const bool copied = drain_stream(*device_, *copy_stream_, deadline);
  return (!staged() || drain_stream(*device_, *convert_stream_, deadline)) && copied;
}

}  // namespace millrace
