// SPDX-License-Identifier: Apache-2.0
#include "pipeline/batch_consumer.h"

#include <new>
#include <utility>

#include "device/profiler_range.h"
#include "pipeline/blocking_call_scope.h"
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

/// Waits for all work of a stream on which no event could be recorded. The run has failed, and the
/// end of the run frees the slot's memory.
void finish(Stream& stream) noexcept {
  try {
    stream.synchronize();
  } catch (...) {
    // A failed device has no work left that uses the memory.
  }
}

}  // namespace

BatchConsumer::BatchConsumer(std::shared_ptr<SlotQueues> queues, std::shared_ptr<Device> device,
                             SlotLayout layout, State identity,
                             std::shared_ptr<const OrderHashes> order)
    : queues_(std::move(queues)),
      device_(std::move(device)),
      layout_(std::move(layout)),
      identity_(std::move(identity)),
      order_(std::move(order)) {}

Batch BatchConsumer::next(const NextRequest& request) {
  refuse_capture(request.stream, "a batch was asked for");
  const BlockingCallScope scope(queues_->forbids_blocking());
  ProfilerRanges* const profiler = device_->profiler();
  const ProfilerRange range(profiler, "next", profiler != nullptr ? queues_->next_number() : 0);
  OutputSlot* output = nullptr;
  try {
    output = queues_->hand_out(request);
  } catch (const std::bad_alloc&) {
    // This batch is lost. The run ends, so that no later call returns the next batch.
    queues_->fail_and_throw("hand out", device_.get());
  }
  if (output == nullptr) return {};
  Batch batch(shared_from_this(), output);  // returns the slot if a wait below fails
  try {
    // All micro-batches are copied by one stream, so the last one's event is recorded after all of
    // them.
    if (!request.in_micro_batches) reach(*output, micro_batches().count - 1);
    scope.check("next");
  } catch (...) {
    queues_->fail_and_throw("hand out", device_.get());
  }
  return batch;
}

void BatchConsumer::await_micro_batch(OutputSlot& output, std::size_t micro_batch) {
  if (micro_batch < output.micro_batches_taken.load(std::memory_order_acquire)) return;
  const SlotQueues::Clock::time_point asked = SlotQueues::Clock::now();
  refuse_capture(output.stream, "a micro-batch was asked for");
  const BlockingCallScope scope(queues_->forbids_blocking());
  queues_->wait_for_micro_batch(output, micro_batch);
  const SlotQueues::Clock::time_point got = SlotQueues::Clock::now();
  try {
    reach(output, micro_batch);
    scope.check("next");
  } catch (...) {
    queues_->fail_and_throw("hand out", device_.get());
  }
  // This is called after the wait, because a thread that finds the micro-batch already taken does
  // not make the stream wait.
  queues_->micro_batch_taken(output, micro_batch, asked, got);
}

void BatchConsumer::reach(OutputSlot& output, std::size_t micro_batch) {
  const Event* copied = output.copied.empty() ? nullptr : output.copied[micro_batch].get();
  if (output.stream != nullptr) {
    use_on(output, *output.stream);
    if (copied != nullptr) output.stream->wait(*copied);
    return;
  }
  while (copied != nullptr && !copied->wait(std::chrono::milliseconds(100)))
    queues_->throw_if_closed();
}

void BatchConsumer::record_stream(OutputSlot& output, Stream& stream) {
  refuse_capture(&stream, "a batch was to be used on a further stream");
  try {
    const BlockingCallScope scope(queues_->forbids_blocking());
    use_on(output, stream);
    scope.check("record_stream");
  } catch (...) {
    queues_->fail_and_throw("hand out", device_.get());
  }
}

void BatchConsumer::use_on(OutputSlot& output, Stream& stream) {
  // Makes an event only if a slot is used on more streams than ever before.
  if (!queues_->use(output, stream)) queues_->use(output, stream, checked_event(*device_));
}

void BatchConsumer::refuse_capture(Stream* stream, const char* call) {
  bool capturing = false;
  try {
    capturing = stream != nullptr && stream->capturing();
  } catch (...) {
    queues_->fail_and_throw("hand out", device_.get());
  }
  if (capturing) throw captured(call);
}

void BatchConsumer::release(OutputSlot& output) noexcept {
  if (!process_.is_owner()) return leak(shared_from_this());
  try {
    const BlockingCallScope scope(queues_->forbids_blocking());
    bool capturing = false;
    for (std::size_t use = 0; use < output.used; ++use) {
      try {
        Stream& stream = *output.uses[use].stream;
        if (stream.capturing())
          capturing = true;  // an event recorded there would become part of the graph
        else
          stream.record(*output.uses[use].done);
      } catch (...) {
        // The loop continues with the other streams.
        queues_->fail("release", device_.get());
        finish(*output.uses[use].stream);
      }
    }
    if (capturing) throw captured("a batch was let go");
    scope.check("release");
  } catch (...) {
    queues_->fail("release", device_.get());
  }
  for (std::size_t use = 0; use < output.used; ++use) output.uses[use].kept.reset();
  try {
    queues_->release(output);
  } catch (...) {
    queues_->fail("release", device_.get());
  }
}

State BatchConsumer::state_at(const RunPosition& at) const {
  State state = identity_;
  state.position = at.position;
  state.window = at.window > 0 ? std::optional(at.window) : std::nullopt;
  order_->fill(state);
  return state;
}

}  // namespace millrace
