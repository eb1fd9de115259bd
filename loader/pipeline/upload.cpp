// SPDX-License-Identifier: Apache-2.0
#include "pipeline/upload.h"

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
      stream.synchronize();  // events cannot be used, but work may still run
    } catch (...) {
      // The device failed, so it has no work left.
    }
  }
  return true;
}

}  // namespace

Upload::Upload(std::shared_ptr<Device> device, const SlotLayout& host, const SlotLayout& batch,
               const BatchFields& fields, const std::optional<Conversion>& conversion,
               std::size_t hosts, std::shared_ptr<HostWorkers> workers, bool each_stage)
    : device_(std::move(device)),
      host_(host),
      batch_(batch),
      image_(fields.image()),
      workers_(std::move(workers)),
      stages_(*device_, host_, fields, conversion, workers_.get()),
      copy_stream_(checked_stream(*device_)) {
  if (!image_ && host_.micro_batches().count == 1) return;
  for (StagingSlot& slot : staging_)
    slot = {checked_device_memory(*device_, host_.bytes()), checked_event(*device_)};
  const std::size_t early = stages_.early();
  if (early > 0) timed_.emplace_back(stages_.name(0));
  if (each_stage && stages_.size() > early + 1) {
    timed_.emplace_back("move");
    for (std::size_t stage = early; stage < stages_.size(); ++stage)
      timed_.emplace_back(stages_.name(stage));
  } else {
    timed_.emplace_back("convert");
  }
  rounds_.resize(hosts + staging_.size());
  for (Round& round : rounds_) {
    round.arrived = checked_timed_event(*device_);
    round.micro_batches.resize(host_.micro_batches().count);
    for (Round::MicroBatch& micro_batch : round.micro_batches) {
      for (std::size_t point = early; point <= timed_.size(); ++point)
        micro_batch.points.push_back(checked_timed_event(*device_));
      if (early == 0) continue;
      micro_batch.early_begin = checked_timed_event(*device_);
      micro_batch.early_end = checked_timed_event(*device_);
    }
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
  if (stages_.early() == 0) return piece.bytes;
  const ProfilerRange range(device_->profiler(), stages_.name(0), host.plan.number);
  make_room_for_round(micro_batch);
  convert_stream_->wait(*host.copies[micro_batch].end);
  const Round::MicroBatch& timed = round().micro_batches[micro_batch];
  convert_stream_->record(*timed.early_begin);
  if (samples > 0)
    stages_.begin(*convert_stream_, staging().memory.data(),
                  host_.micro_batches().begin(micro_batch), samples);
  convert_stream_->record(*timed.early_end);
  return piece.bytes;
}

/// Drops the oldest round if a new round needs its element of `rounds_`. The oldest round has then
/// ended (see `rounds_`).
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
  auto point = round.micro_batches[micro_batch].points.begin();
  convert_stream_->record(**point++);
  const std::size_t first = host_.micro_batches().begin(micro_batch);
  const std::size_t count = host_.micro_batches().samples_of(micro_batch, host.plan.size);
  if (count > 0) {
    const ProfilerRange range(image_ ? device_->profiler() : nullptr, "move", host.plan.number);
    move_fields(output.base, first, count);
  }
  for (std::size_t stage = stages_.early(); stage < stages_.size(); ++stage) {
    if (times_each()) convert_stream_->record(**point++);
    if (count == 0) continue;
    const ProfilerRange range(device_->profiler(), stages_.name(stage), host.plan.number);
    stages_.launch(stage, *convert_stream_, staging().memory.data(), first, count,
                   output.base + batch_.piece(*image_, first, count).offset);
  }
  convert_stream_->record(**point);
  convert_stream_->record(*output.copied[micro_batch]);
  if (micro_batch + 1 < host_.micro_batches().count) return;
  convert_stream_->record(*staging().converted);
  ++next_round_;
}

/// Copies all fields of samples [first, first + count) except the converted one. In a slot with one
/// micro-batch, fields with equal distances in both slots take one copy, including the gaps between
/// them. In other slots, a gap may hold another micro-batch's samples.
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

void Upload::take_conversions(std::vector<RunMeter::StreamWork>& into) {
  for (; oldest_round_ < next_round_; ++oldest_round_) {
    const Round& round = rounds_[oldest_round_ % rounds_.size()];
    if (!round.micro_batches.back().points.back()->complete()) return;
    auto arrived_at = round.arrived->passed_at();
    for (const Round::MicroBatch& timed : round.micro_batches) {
      std::size_t work = 0;
      if (stages_.early() > 0) {
        const auto began_at = timed.early_begin->passed_at();
        const auto ended_at = timed.early_end->passed_at();
        if (began_at && ended_at)
          into.push_back({*began_at, *began_at, *ended_at, round.batch, work});
        ++work;
      }
      auto began_at = timed.points.front()->passed_at();
      for (auto end = timed.points.begin() + 1; end != timed.points.end(); ++end, ++work) {
        const auto ended_at = (*end)->passed_at();
        if (began_at && ended_at)
          into.push_back({arrived_at.value_or(*began_at), *began_at, *ended_at, round.batch, work});
        arrived_at.reset();
        began_at = ended_at;
      }
    }
  }
}

bool Upload::drain(std::chrono::steady_clock::time_point deadline) noexcept {
  const bool copied = drain_stream(*device_, *copy_stream_, deadline);
  return (!staged() || drain_stream(*device_, *convert_stream_, deadline)) && copied;
}

}  // namespace millrace
