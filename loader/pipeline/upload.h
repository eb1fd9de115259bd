// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/conversion_work.h>
#include <millrace/pipeline.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pipeline/batch_fields.h"
#include "pipeline/road/run_meter.h"
#include "pipeline/road/slot_layout.h"
#include "pipeline/road/slots.h"

namespace millrace {

/// The way of made micro-batches to their place on the device, one copy each. If host and device
/// slot have one layout, that copy goes straight there:
///
///     copy stream:     [done of the slot's last batch] copy
///
/// Otherwise it goes into one of two staging slots of the host slot's layout, and a stream of its
/// own moves it on:
///
///     copy stream:     [converted, of the staging slot's last batch] copy ------.
///     convert stream:                            [copy] [done of the slot's last batch] convert
///
/// So neither a slow conversion nor a busy device holds up the next batch's copy. No call waits for
/// the device but `drain`. All are made by one thread at a time.
class Upload {
 public:
  /// Takes the staging slots where they are needed, for batches out of `hosts` host slots. Where
  /// the host is the device, `workers` share in conversions.
  Upload(std::shared_ptr<Device> device, const SlotLayout& host, const SlotLayout& batch,
         const BatchFields& fields, const std::optional<Conversion>& conversion, std::size_t hosts,
         std::shared_ptr<HostWorkers> workers = nullptr);

  /// Whether batches go through staging slots.
  bool staged() const { return convert_stream_ != nullptr; }
  std::size_t staging_bytes() const;

  /// If staged: enqueues the copy of a micro-batch, which needs no device slot yet. Returns its
  /// bytes.
  std::size_t copy(HostSlot& host, std::size_t micro_batch);
  /// Enqueues the rest of a micro-batch's way; if not staged, all of it. Returns the bytes it
  /// copied from the host. Micro-batches come in order.
  std::size_t deliver(HostSlot& host, Lease& lease, std::size_t micro_batch);

  /// Adds the conversions that have ended since the last call.
  void take_conversions(std::vector<RunMeter::StreamWork>& into);
  /// Whether some have not been taken.
  bool converting() const { return oldest_round_ < next_round_; }

  /// Waits for all that was enqueued; false if that has not ended by `deadline`.
  bool drain(std::chrono::steady_clock::time_point deadline) noexcept;

 private:
  struct StagingSlot {
    Memory memory;
    /// Behind the conversion of the batch last in it.
    std::unique_ptr<Event> converted;
  };
  /// One batch's conversions, timed.
  struct Round {
    struct Conversion {
      std::unique_ptr<Event> begin;
      std::unique_ptr<Event> end;
    };
    std::uint64_t batch = 0;
    /// The batch's first micro-batch was there; from then on it waited for its device slot.
    std::unique_ptr<Event> arrived;
    /// One per micro-batch.
    std::vector<Conversion> conversions;
  };

  StagingSlot& staging() { return staging_[next_round_ % staging_.size()]; }
  SlotLayout::Piece piece_of(const HostSlot& host, std::size_t micro_batch) const;
  void convert(HostSlot& host, Lease& lease, std::size_t micro_batch);
  void move_fields(std::byte* base, std::size_t first, std::size_t count);
  void mix_images(std::byte* in, std::size_t first, std::size_t count);
  void convert_images(std::byte* from, std::byte* to, std::size_t first, std::size_t count);

  const std::shared_ptr<Device> device_;
  const SlotLayout host_;
  const SlotLayout batch_;
  const std::optional<std::size_t> image_;
  const std::optional<std::size_t> flips_;
  const std::optional<std::size_t> erases_;
  const std::optional<std::size_t> mixes_;
  const std::shared_ptr<HostWorkers> workers_;
  /// What is the same for all conversions.
  ConversionWork work_;
  std::size_t images_per_sample_ = 1;
  std::array<StagingSlot, 2> staging_;
  /// One more than there can be conversions that the host does not know to have ended: a batch's
  /// host slot is free again only once its copy has passed, which comes behind the conversion of
  /// the batch two before it.
  std::vector<Round> rounds_;
  std::uint64_t next_round_ = 0;
  std::uint64_t oldest_round_ = 0;
  // Last, since they go first: what they have queued uses the memory. Where a stream's end does not
  // wait for its work (CUDA), `drain` does before.
  std::unique_ptr<Stream> copy_stream_;
  std::unique_ptr<Stream> convert_stream_;
};

}  // namespace millrace
