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

#include "pipeline/schedule.h"

namespace millrace {

/// What is known of the samples of a batch on the host.
struct BatchRecords {
  std::vector<std::uint64_t> indices;
  std::vector<std::uint8_t> valid;
};

/// Pinned memory for one batch in the making, and what becomes of it there. Its owner changes along
/// the road: planner, workers, feeder, reaper; the hand-overs go through the engine's mutex.
struct HostSlot {
  std::size_t number = 0;
  Memory memory;
  BatchPlan plan;
  BatchRecords records;
  /// The global position of each sample.
  std::vector<std::uint64_t> positions;
  /// Samples of each part that are not made yet. Workers count down with release and acquire: who
  /// takes the last one has seen all the others' pixels, and passes them on through the engine's
  /// mutex.
  std::vector<std::atomic<std::size_t>> unmade;
  std::chrono::steady_clock::time_point planned_at;
  /// Parts that are not made yet, of those that have samples; guarded by the engine's mutex.
  std::size_t parts_unmade = 0;
  /// A part's copy: when the part was there to be copied, and events around the copy on the copy
  /// stream.
  struct PartCopy {
    std::chrono::steady_clock::time_point made_at;
    std::unique_ptr<Event> begin;
    std::unique_ptr<Event> end;
    /// When these were passed; the reaper's.
    std::optional<std::chrono::steady_clock::time_point> began_at{};
    std::optional<std::chrono::steady_clock::time_point> ended_at{};
  };
  /// The last one's end is behind all copies out of this slot.
  std::vector<PartCopy> copies;
};

/// A slot that can be handed out: a device slot, or on a device that does not copy the host slot
/// itself. A `Batch` is a counted share of it.
struct Lease {
  std::size_t slot = 0;
  std::byte* base = nullptr;
  Memory memory;
  /// Where there is no copying: the host slot that is handed out.
  HostSlot* host = nullptr;
  BatchPlan plan;
  BatchRecords records;
  /// One per part, behind its copy.
  std::vector<std::unique_ptr<Event>> ready;

  /// A stream that the batch is used on, and the event behind its use.
  struct Use {
    Stream* stream = nullptr;
    std::unique_ptr<Event> done;
  };
  /// The first `used` are those of the batch now or last here; the others' events are kept for
  /// later.
  std::vector<Use> uses;
  std::size_t used = 0;

  /// Parts on their way to the device.
  std::size_t parts_ready = 0;
  /// The trainer let go before all parts were on their way; the feeder then passes the slot on.
  bool released_early = false;
  /// Parts the trainer has taken. Set under the engine's mutex, looked at without it; what a part
  /// holds is passed on by the mutex.
  std::atomic<std::size_t> parts_taken{0};
  /// The stream given to `next`; none for use on the host.
  Stream* stream = nullptr;
  /// When the batch got its host slot, and when it waited for this slot: not the workers' fault.
  std::chrono::steady_clock::time_point planned_at;
  std::chrono::steady_clock::time_point slot_wait_begin;
  std::chrono::steady_clock::time_point slot_wait_end;

  /// `Batch` objects that share it. The last one's release must see what the others did: release
  /// and acquire.
  std::atomic<std::size_t> shares{0};
};

/// Waits until the streams that the batch now or last in a slot was used on are done with it; false
/// when they are not after `timeout` each. A device that fails has nothing under way any more.
bool wait_for_uses(const Lease& lease, std::chrono::nanoseconds timeout) noexcept;

}  // namespace millrace
