// SPDX-License-Identifier: Apache-2.0
#include "pipeline/desk.h"

#include <new>
#include <utility>

#include "device/profiler_range.h"
#include "pipeline/batch_path.h"
#include "pipeline/checked_device.h"

namespace millrace {
namespace {

Error captured(const std::string& what) {
  return {ErrorCode::invalid_argument,
          what +
              " while the stream is being captured into a graph: take the batch before the "
              "capture begins, and let it go after it ends",
          "hand out"};
}

/// Waits for the stream itself when no event tells that it is done with a batch: the slot's memory
/// is freed with the run, which has failed.
void finish(Stream& stream) noexcept {
  try {
    stream.synchronize();
  } catch (...) {
    // A failed device has no work left that uses the memory.
  }
}

}  // namespace

Desk::Desk(std::shared_ptr<Road> road, std::shared_ptr<Device> device, SlotLayout layout,
           State identity)
    : road_(std::move(road)),
      device_(std::move(device)),
      layout_(std::move(layout)),
      identity_(identity) {}

Batch Desk::next(const NextRequest& request) {
  refuse_capture(request.stream, "a batch was asked for");
  const BatchPath path(road_->watched());
  ProfilerRanges* const profiler = device_->profiler();
  const ProfilerRange range(profiler, "next", profiler != nullptr ? road_->next_number() : 0);
  Lease* lease = nullptr;
  try {
    lease = road_->hand_out(request);
  } catch (const std::bad_alloc&) {
    // A batch is lost: no later call may return the batch after it.
    road_->fail_and_throw("hand out", device_.get());
  }
  if (lease == nullptr) return {};
  Batch batch(shared_from_this(), lease);  // returns the slot if a wait below fails
  try {
    // All micro-batches are copied by one stream, so the last one's event is behind all of them.
    if (!request.in_parts) reach(*lease, micro_batches().count - 1);
    path.check("next");
  } catch (...) {
    road_->fail_and_throw("hand out", device_.get());
  }
  return batch;
}

void Desk::take(Lease& lease, std::size_t micro_batch) {
  if (micro_batch < lease.taken.load(std::memory_order_acquire)) return;
  const Road::Clock::time_point asked = Road::Clock::now();
  refuse_capture(lease.stream, "a micro-batch was asked for");
  const BatchPath path(road_->watched());
  road_->wait_for_micro_batch(lease, micro_batch);
  const Road::Clock::time_point got = Road::Clock::now();
  try {
    reach(lease, micro_batch);
    path.check("next");
  } catch (...) {
    road_->fail_and_throw("hand out", device_.get());
  }
  // Only after the wait: a thread that finds it taken does not make the stream wait.
  road_->taken(lease, micro_batch, asked, got);
}

void Desk::reach(Lease& lease, std::size_t micro_batch) {
  const Event* copied = lease.copied.empty() ? nullptr : lease.copied[micro_batch].get();
  if (lease.stream != nullptr) {
    use_on(lease, *lease.stream);
    if (copied != nullptr) lease.stream->wait(*copied);
    return;
  }
  while (copied != nullptr && !copied->wait(std::chrono::milliseconds(100)))
    road_->throw_if_closed();
}

void Desk::record_stream(Lease& lease, Stream& stream) {
  refuse_capture(&stream, "a batch was to be used on a further stream");
  try {
    const BatchPath path(road_->watched());
    use_on(lease, stream);
    path.check("record_stream");
  } catch (...) {
    road_->fail_and_throw("hand out", device_.get());
  }
}

void Desk::use_on(Lease& lease, Stream& stream) {
  // Makes an event only if a slot is used on more streams than ever before.
  if (!road_->use(lease, stream)) road_->use(lease, stream, checked_event(*device_));
}

void Desk::refuse_capture(Stream* stream, const char* call) {
  bool capturing = false;
  try {
    capturing = stream != nullptr && stream->capturing();
  } catch (...) {
    road_->fail_and_throw("hand out", device_.get());
  }
  if (capturing) throw captured(call);
}

void Desk::release(Lease& lease) noexcept {
  if (!process_.here()) return leak(shared_from_this());
  try {
    const BatchPath path(road_->watched());
    bool capturing = false;
    for (std::size_t use = 0; use < lease.used; ++use) {
      try {
        Stream& stream = *lease.uses[use].stream;
        if (stream.capturing())
          capturing = true;  // an event recorded there would become part of the graph
        else
          stream.record(*lease.uses[use].done);
      } catch (...) {
        // Still waits for the work on the other streams.
        road_->fail("release", device_.get());
        finish(*lease.uses[use].stream);
      }
    }
    if (capturing) throw captured("a batch was let go");
    path.check("release");
  } catch (...) {
    road_->fail("release", device_.get());
  }
  for (std::size_t use = 0; use < lease.used; ++use) lease.uses[use].kept.reset();
  try {
    road_->release(lease);
  } catch (...) {
    road_->fail("release", device_.get());
  }
}

State Desk::state_at(std::uint64_t position) const {
  State state = identity_;
  state.position = position;
  return state;
}

}  // namespace millrace
