// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/device.h>
#include <millrace/transform.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cache/recoded_records.h"
#include "cache/record_hints.h"
#include "cache/sample_cache.h"
#include "pipeline/samples/packed_sample.h"

namespace millrace {

/// The pipeline's side of a `Sample`: access to its record's hint and cache entries. It also shows
/// the sample's current stage to other threads and to a profiler. It serves one sample after the
/// other. For one thread at a time.
class SampleContext {
 public:
  using Clock = std::chrono::steady_clock;

  /// Stage number that other threads see while a sample is paused.
  static constexpr std::size_t paused_stage = static_cast<std::size_t>(-2);

  /// Objects that all samples of a run share.
  struct Shared {
    /// Null: hints are not kept in memory.
    RecordHints* kept_hints = nullptr;
    /// Source of stored hints. Null: hints are not used.
    const Dataset* stored_hints = nullptr;
    /// Null: samples are not cached.
    SampleCache* cache = nullptr;
    /// Null: recoded records are not cached.
    RecodedRecords* recoded = nullptr;
    /// Null: stages are not reported.
    ProfilerRanges* profiler = nullptr;
    /// Names of the stages for the profiler.
    std::span<const char* const> stage_names{};
  };

  /// `now_in`, if not null, always holds the current stage, for other threads to read.
  explicit SampleContext(std::atomic<std::size_t>* now_in = nullptr) : now_in_(now_in) {}
  SampleContext(const SampleContext&) = delete;
  SampleContext& operator=(const SampleContext&) = delete;

  void share(const Shared& shared) { shared_ = shared; }
  /// Sets the memory of a packed field; null if the samples have none. Must outlive the context.
  void set_packed(PackedSample* packed) { packed_ = packed; }
  /// Sets the position of the next samples in the order.
  void set_position(std::uint64_t position) { position_ = position; }

  /// Makes the `Sample` object of a record in batch `batch`. The sample uses this context until the
  /// sample is destroyed. Its stage 0 began at `begin`.
  Sample begin(const SampleSpec& spec, std::span<const Tensor> fields,
               std::span<std::uint64_t> stage_ns, std::uint64_t record, std::uint64_t batch,
               Clock::time_point begin);
  /// Stops the time of the sample's current stage, and returns the time at which it ended.
  static Clock::time_point finish(Sample& sample);
  /// Returns the sample's position in the order; 0 outside of a pipeline.
  static std::uint64_t position_of(const Sample& sample) {
    return sample.context_ != nullptr ? sample.context_->position_ : 0;
  }
  /// Adds the hint, the bytes written to `room_in_cache` and the recoded record to their caches.
  /// Call it after the sample is made.
  void store();
  /// Data from which a sample was made.
  enum class Source : std::uint8_t { record, hinted_record, recoded_now, cache };
  static constexpr std::size_t source_count = 4;
  Source source() const { return source_; }
  /// Message of the exception of `Dataset::stored_hint`; empty if it did not throw.
  const std::string& hint_failure() const { return hint_failure_; }

  // The `Sample` calls these. Its methods of the same names document them.
  bool has_hints() const { return shared_.stored_hints != nullptr; }
  std::span<const std::byte> hint();
  void keep_hint(std::span<const std::byte> hint);
  std::span<const std::byte> cached();
  std::span<std::byte> room_in_cache();
  std::span<const std::byte> recoded();
  bool wants_recoded(std::size_t stored_bytes) const;
  void keep_recoded(std::span<const std::byte> form);
  std::span<std::byte> packed_room(std::size_t bytes, std::size_t least) {
    return packed_ != nullptr ? packed_->pack(bytes, least) : std::span<std::byte>();
  }
  void enter_stage(std::size_t stage);
  void leave_stage();
  void show_pause();
  /// Ends the sample. Gives back memory of `room_in_cache` that was not added to the cache.
  void end();

 private:
  void read_stored_hint();

  std::atomic<std::size_t>* now_in_;
  Shared shared_{};
  PackedSample* packed_ = nullptr;
  std::uint64_t record_ = 0;
  std::uint64_t batch_ = 0;
  std::uint64_t position_ = 0;
  /// Reusable memory for a hint that is read and one that is to be kept.
  std::vector<std::byte> read_hint_;
  std::vector<std::byte> kept_hint_;
  std::string hint_failure_;
  /// Memory that `room_in_cache` returned for this sample, not added to the cache yet.
  std::span<std::byte> room_{};
  /// Argument of `keep_recoded`.
  std::span<const std::byte> form_{};
  bool keeps_form_ = false;
  Source source_ = Source::record;
  bool in_range_ = false;
};

}  // namespace millrace
