// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/device.h>
#include <millrace/sampler.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pipeline/slots/packed_room.h"
#include "pipeline/slots/schedule.h"
#include "pipeline/slots/slot_layout.h"

namespace millrace {

/// Record indices and validity of a batch's samples, on the host.
struct BatchRecords {
  std::vector<std::uint64_t> indices;
  std::vector<std::uint8_t> valid;
};

/// State of a host slot. Only calls of the slot queues change it.
enum class HostState : std::uint8_t {
  free,
  planning,  ///< the planner fills in the records of its samples
  planned,   ///< workers make its samples; the upload thread takes finished micro-batches
  leaving,   ///< all micro-batches are on their way; a copy or the trainer's streams still read it
};

/// State of an output slot. Only calls of the slot queues change it.
enum class OutputSlotState : std::uint8_t {
  free,
  filling,   ///< the upload thread has it; no micro-batch is on its way yet
  ready,     ///< it can be handed out
  live,      ///< the trainer has it
  returned,  ///< the trainer released it before all micro-batches were on their way
};

/// Pinned memory for one batch, with the batch's state while its samples are made. Its owners are
/// in turn the planner, the workers, the upload thread and the plan-recycle thread. Each change of
/// owner is made under the mutex of the slot queues.
struct HostSlot {
  std::size_t number = 0;
  Memory memory{};
  BatchPlan plan{};
  BatchRecords records{};
  /// The global position of each sample.
  std::vector<std::uint64_t> positions{};
  /// Draws replacements of bad records, with the weights that the batch was planned with. Null if
  /// the slot is free.
  std::shared_ptr<const Sampler> sampler{};
  /// Keeps the batch's records in memory if the dataset is a stream. Released when all samples are
  /// made, or with `Run::keeps_records` when the slot is freed.
  std::shared_ptr<const void> records_held{};
  /// Number of samples of each micro-batch that are not made yet. Workers count down with release
  /// and acquire, so the worker that makes the last sample sees the others' pixels. That worker
  /// alone calls the slot queues, which use `made`. So no worker still changes the count when the
  /// slot is used again.
  std::vector<std::atomic<std::size_t>> unmade{};
  /// Room of each micro-batch for a packed field.
  std::vector<PackedRoom> packed{};
  /// Copy of a micro-batch: when the micro-batch was ready to be copied, and events around the copy
  /// on the copy stream.
  struct Copy {
    std::chrono::steady_clock::time_point made_at;
    std::unique_ptr<Event> begin;
    std::unique_ptr<Event> end;
    /// Times at which the copy stream passed the events. Used by the plan-recycle thread alone.
    std::optional<std::chrono::steady_clock::time_point> began_at{};
    std::optional<std::chrono::steady_clock::time_point> ended_at{};
  };
  /// The last copy's end event is recorded after all copies out of this slot. Empty if batches are
  /// not copied.
  std::vector<Copy> copies{};

  // Guarded by the mutex of the slot queues.
  HostState state = HostState::free;
  /// Whether each micro-batch is made, and the number of those that are not.
  std::vector<bool> made{};
  std::size_t micro_batches_unmade = 0;
  /// Number of micro-batches that the upload thread has taken.
  std::size_t next_to_upload = 0;
  std::chrono::steady_clock::time_point planned_at{};

  bool next_is_made() const { return made[next_to_upload]; }
  /// Marks all micro-batches of the plan as not made and not taken. Micro-batches without samples
  /// count as made.
  void begin_making(const MicroBatches& micro_batches);
};

/// A slot that is handed out: a device slot, or the host slot itself on a device that does not
/// copy. `Batch` objects share it by a reference count (`shares`).
struct OutputSlot {
  std::size_t slot = 0;
  std::byte* base = nullptr;
  Memory memory{};
  /// The host slot that is handed out; null if batches are copied.
  HostSlot* host = nullptr;
  BatchPlan plan{};
  BatchRecords records{};
  /// One event per micro-batch, recorded after its copy. Empty if batches are not copied.
  std::vector<std::unique_ptr<Event>> copied{};

  /// A stream that uses the batch, and the event recorded after that use.
  struct Use {
    Stream* stream = nullptr;
    std::unique_ptr<Event> done;
    /// The stream's owner, if the batch shares ownership of the stream.
    std::shared_ptr<Stream> kept{};
  };
  /// The first `used` elements belong to the current batch, or to the last batch if the slot is
  /// free. The other elements keep their events for later batches.
  std::vector<Use> uses{};
  std::size_t used = 0;
  /// Returns the batch's use on `stream`; null if the batch is not used there.
  Use* use_on(const Stream& stream);

  /// Guarded by the mutex of the slot queues.
  OutputSlotState state = OutputSlotState::free;
  /// Number of micro-batches on their way to the trainer.
  std::size_t micro_batches_enqueued = 0;
  /// Number of micro-batches that the trainer has: its stream waits for them. Stored with release
  /// order, so a thread that loads it with acquire order sees the micro-batch's contents.
  std::atomic<std::size_t> micro_batches_taken{0};
  /// The stream given to `next`; null for use on the host.
  Stream* stream = nullptr;
  /// When the batch got its host slot, and when it waited for this slot. That wait does not count
  /// as a stall.
  std::chrono::steady_clock::time_point planned_at{};
  std::chrono::steady_clock::time_point slot_wait_begin{};
  std::chrono::steady_clock::time_point slot_wait_end{};

  /// Number of `Batch` objects that share the slot. Release and acquire order lets the last one see
  /// the writes of the others.
  std::atomic<std::size_t> shares{0};

  /// Waits until the streams have finished their uses of the current or last batch. Returns false
  /// if some have not by `deadline`. A device that fails counts as having no work left.
  bool wait_for_uses(std::chrono::steady_clock::time_point deadline) const noexcept;
};

/// Throws `Error` (`internal`) that names `call` and the slot's state if `allowed` is false.
void require(bool allowed, const HostSlot& slot, const char* call);
void require(bool allowed, const OutputSlot& slot, const char* call);

/// Changes a slot's state from the only state in which `call` is allowed.
template <typename Slot, typename State>
void change(Slot& slot, State from, State to, const char* call) {
  require(slot.state == from, slot, call);
  slot.state = to;
}

/// Timeout for work on a device that still uses memory to be freed. If the work does not end by
/// then, the memory is never freed.
inline constexpr std::chrono::minutes patience_with_device{1};

/// Slots of a pipeline, and the device that they belong to.
struct Slots {
  std::shared_ptr<Device> device;
  std::vector<std::unique_ptr<HostSlot>> hosts{};
  std::vector<std::unique_ptr<OutputSlot>> outputs{};

  /// Waits for the uses of all output slots. Returns false if some do not end by `deadline`.
  bool wait_for_uses(std::chrono::steady_clock::time_point deadline) const noexcept;
  /// Leaks the slots: their memory is never freed.
  void abandon() noexcept;
};

/// Frees the slots once all streams have finished their uses of the batches in them. The calling
/// thread does not wait, since it may be the thread of such a stream.
void free_when_unused(Slots slots) noexcept;

}  // namespace millrace
