// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "pipeline/slots/packed_room.h"

namespace millrace {

/// The packed field of the sample that a worker makes. A packed input is written directly to the
/// room of the micro-batch. A field that the worker makes itself is copied there when the sample is
/// made. For one thread at a time.
class PackedSample {
 public:
  /// The field has `field_bytes` bytes. Each sample's share of the room is as large.
  explicit PackedSample(std::size_t field_bytes)
      : share_(packed_bytes(field_bytes)), field_(field_bytes) {}
  /// Memory of the field, for a worker that makes it.
  std::byte* field() { return field_.data(); }

  /// Begins a sample in `room`, whose memory begins at `to`.
  void begin(PackedRoom& room, std::byte* to) {
    room_ = &room;
    to_ = to;
    left_ = share_;
    used_ = taken_ = 0;
  }
  /// Begins an attempt to make the sample. If `fixed`, `pack` refuses an input.
  void make(bool fixed) {
    fixed_ = fixed;
    packed_ = false;
  }
  /// Allocates `bytes` bytes for a packed input, which count as at least `least` bytes of the room.
  /// Returns the memory; empty if the room is exhausted or the sample is fixed.
  std::span<std::byte> pack(std::size_t bytes, std::size_t least) {
    constexpr std::size_t most = std::size_t{1} << 40U;
    packed_ = !fixed_ && bytes > 0 && std::max(bytes, least) < most &&
              take(packed_bytes(bytes), packed_bytes(std::max(bytes, least)));
    return packed_ ? std::span(to_ + offset_, bytes) : std::span<std::byte>();
  }
  /// Ends the sample. Returns the offset of its input in input units, or `DeviceStage::no_input`.
  std::uint32_t end() {
    if (!packed_) {
      if (!take(share_, share_)) return DeviceStage::no_input;
      std::memcpy(to_ + offset_, field_.data(), field_.size());
    }
    return static_cast<std::uint32_t>(offset_ / DeviceStage::input_unit);
  }

 private:
  /// Allocates `bytes` bytes, which count as `whole` bytes of the room. Uses the memory of a failed
  /// attempt again if it is large enough.
  bool take(std::size_t bytes, std::size_t whole) {
    if (bytes <= used_ && whole <= taken_) return true;
    const std::size_t extra = whole > left_ ? whole - left_ : 0;
    if (extra > 0 && !room_->take(extra)) return false;
    room_->leave(left_ + extra - whole);
    left_ = 0;
    offset_ = room_->place(bytes);
    used_ = bytes;
    taken_ = whole;
    return true;
  }

  const std::size_t share_;
  std::vector<std::byte> field_;
  PackedRoom* room_ = nullptr;
  std::byte* to_ = nullptr;
  /// Unused bytes of the sample's share.
  std::size_t left_ = 0;
  /// Offset and size of its memory in the room.
  std::size_t offset_ = 0;
  std::size_t used_ = 0;
  /// Bytes of the room that count as taken by the sample.
  std::size_t taken_ = 0;
  bool fixed_ = false;
  bool packed_ = false;
};

}  // namespace millrace
