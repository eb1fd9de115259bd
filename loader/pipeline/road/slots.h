// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/device.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pipeline/road/schedule.h"
#include "pipeline/road/slot_layout.h"

namespace millrace {

/// What is known of the samples of a batch on the host.
struct BatchRecords {
  std::vector<std::uint64_t> indices;
  std::vector<std::uint8_t> valid;
};

/// Where a host slot is on the road, whose calls alone change it.
enum class HostState : std::uint8_t {
  free,
  planning,  ///< the planner fills in which records it gets
  planned,   ///< workers make its samples, the feeder takes the micro-batches that are made
  leaving,   ///< all are on their way, but a copy or the trainer's streams still read the slot
};

/// Where a lease is on the road.
enum class LeaseState : std::uint8_t {
  free,
  filling,   ///< the feeder has it; no micro-batch is on its way yet
  ready,     ///< it can be handed out
  live,      ///< the trainer has it
  returned,  ///< the trainer let go before all micro-batches were on their way
};

/// Pinned memory for one batch in the making, and what becomes of it there. Its owner changes along
/// the road (planner, workers, feeder, reaper); the hand-overs go through the road's mutex.
struct HostSlot {
  std::size_t number = 0;
  Memory memory{};
  BatchPlan plan{};
  BatchRecords records{};
  /// The global position of each sample.
  std::vector<std::uint64_t> positions{};
  /// Samples of each micro-batch that are not made yet. Workers count down with release and
  /// acquire: who takes the last one has seen all the others' pixels. It alone tells the road,
  /// which goes by `made`, so no count of this batch is left when the slot comes round.
  std::vector<std::atomic<std::size_t>> unmade{};
  /// A micro-batch's copy: when the micro-batch was there to be copied, and events around the copy
  /// on the copy stream.
  struct Copy {
    std::chrono::steady_clock::time_point made_at;
    std::unique_ptr<Event> begin;
    std::unique_ptr<Event> end;
    /// When these were passed; the reaper's.
    std::optional<std::chrono::steady_clock::time_point> began_at{};
    std::optional<std::chrono::steady_clock::time_point> ended_at{};
  };
  /// The last one's end is behind all copies out of this slot. Empty if nothing is copied.
  std::vector<Copy> copies{};

  // The road's, under its mutex.
  HostState state = HostState::free;
  /// Whether each micro-batch is made, and how many are not.
  std::vector<bool> made{};
  std::size_t micro_batches_unmade = 0;
  /// Micro-batches that the feeder has taken.
  std::size_t fed = 0;
  std::chrono::steady_clock::time_point planned_at{};

  /// Nothing of its plan is made or fed yet, but micro-batches without samples.
  void begin_making(const MicroBatches& micro_batches);
};

/// A slot that can be handed out: a device slot, or on a device that does not copy the host slot
/// itself. A `Batch` is a counted share of it.
struct Lease {
  std::size_t slot = 0;
  std::byte* base = nullptr;
  Memory memory{};
  /// The host slot that is handed out, if nothing is copied.
  HostSlot* host = nullptr;
  BatchPlan plan{};
  BatchRecords records{};
  /// One event per micro-batch, behind its copy. Empty if nothing is copied.
  std::vector<std::unique_ptr<Event>> copied{};

  /// A stream that the batch is used on, and the event behind its use.
  struct Use {
    Stream* stream = nullptr;
    std::unique_ptr<Event> done;
    /// The stream's owner, if the batch shall keep it.
    std::shared_ptr<Stream> kept{};
  };
  /// The first `used` are those of the batch now or last here; the others' events are kept for
  /// later.
  std::vector<Use> uses{};
  std::size_t used = 0;
  /// The batch's use on `stream`; null if there is none.
  Use* use_on(const Stream& stream);

  /// The road's, under its mutex.
  LeaseState state = LeaseState::free;
  /// Micro-batches on their way to the trainer.
  std::size_t on_way = 0;
  /// Micro-batches that the trainer has: its stream waits for them. Released by who took one, so
  /// who acquires it sees what the micro-batch holds.
  std::atomic<std::size_t> taken{0};
  /// The stream given to `next`; null for use on the host.
  Stream* stream = nullptr;
  /// When the batch got its host slot, and when it waited for this slot: not the workers' fault.
  std::chrono::steady_clock::time_point planned_at{};
  std::chrono::steady_clock::time_point slot_wait_begin{};
  std::chrono::steady_clock::time_point slot_wait_end{};

  /// `Batch` objects that share it. The last one's release must see what the others did: release
  /// and acquire.
  std::atomic<std::size_t> shares{0};

  /// Waits until the streams that the batch now or last here was used on are done with it; false if
  /// they are not by `deadline`. A device that fails has nothing under way any more.
  bool wait_for_uses(std::chrono::steady_clock::time_point deadline) const noexcept;
};

/// Throws `Error` (`internal`) that names `call` and the slot's state if `allowed` is false.
void require(bool allowed, const HostSlot& slot, const char* call);
void require(bool allowed, const Lease& slot, const char* call);

/// Moves a slot on from the one state in which `call` may be made.
template <typename Slot, typename State>
void change(Slot& slot, State from, State to, const char* call) {
  require(slot.state == from, slot, call);
  slot.state = to;
}

/// How long what goes waits for work on a device that still uses its memory. If that work does not
/// end by then, the memory is never freed.
inline constexpr std::chrono::minutes patience_with_device{1};

/// The slots of a pipeline, and the device whose they are.
struct Slots {
  std::shared_ptr<Device> device;
  std::vector<std::unique_ptr<HostSlot>> hosts{};
  std::vector<std::unique_ptr<Lease>> leases{};

  /// Waits for the uses of all leases; false if some do not end by `deadline`.
  bool wait_for_uses(std::chrono::steady_clock::time_point deadline) const noexcept;
  /// Never frees them.
  void abandon() noexcept;
};

/// Frees the slots, but not before the streams that batches in them were used on are done with
/// them. Does not wait for that itself: this may be one of those streams' threads.
void let_go(Slots slots) noexcept;

}  // namespace millrace
