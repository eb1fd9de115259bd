// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace millrace::jpeg {

/// Restart markers are these and the seven that follow, in turn.
inline constexpr int first_restart = 0xD0;

/// Bytes of any kind that may stand before the marker that is due. Damaged scans often leave more.
inline constexpr std::size_t max_stray_bytes = 4;

/// Whether bytes before a marker are stray and may be skipped: at most `max_stray_bytes`, or zeros.
/// `in_file` is their number in the file, with the zeros that are stuffed behind each FF.
bool are_stray(std::span<const std::uint8_t> bytes, std::size_t in_file);

/// The offset behind the first marker of a scan from byte `begin` on, if that is `marker`. An FF
/// that fills up before a marker counts as another one.
std::optional<std::size_t> offset_behind(int marker, std::span<const std::uint8_t> scan,
                                         std::size_t begin);

/// The entropy-coded bytes of a scan without the zeros that are stuffed behind each FF (T.81,
/// B.1.1.5), a window at a time, so that bits can be taken without a look at what they are.
/// Behind the last byte before a marker, or before the file's end, come zeros.
class ScanBytes {
 public:
  /// How many bytes from `next` on may be read without a call between, once `ensure` was called.
  static constexpr std::size_t reach = 512;
  /// How many bytes are there at a time, at most.
  static constexpr std::size_t window_bytes = 8192;

  /// Begins to read at byte `offset` of a scan, which is below its size or 0. About `wanted` bytes
  /// will be read there. The scan must outlive the calls that follow. With `with_offsets`,
  /// `offset_of` may be asked.
  void begin(std::span<const std::uint8_t> scan, std::size_t offset = 0,
             std::size_t wanted = window_bytes, bool with_offsets = false);

  /// Of the window: the first byte, and the place up to which `reach` bytes may be read.
  const std::uint8_t* first() const { return window_.data(); }
  const std::uint8_t* limit() const { return limit_; }
  /// Moves the window on if `next` is at or behind the limit; `next` moves with it. False if there
  /// is nothing but the zeros: `next` is behind the last byte, and 8 bytes more.
  bool ensure(const std::uint8_t*& next);

  /// How many bytes of the window, and of those before it, lie before `next`, from where reading
  /// began.
  std::size_t place_of(const std::uint8_t* next) const {
    return before_ + static_cast<std::size_t>(next - window_.data());
  }
  /// The offset in the scan of the byte at a place, as `place_of` counts it; behind a marker for
  /// the place where that stands. Places must not become less from one call to the next.
  std::size_t offset_of(std::size_t place);

  /// How many bits there are from the byte `next` to the last byte's end: negative if `next` is
  /// behind it. Only where the window has the last byte; if it has not, more than 64.
  std::ptrdiff_t bits_left(const std::uint8_t* next) const;

  /// Counts the whole bytes between the bits that are used up and the scan's next marker: 0 in a
  /// sound scan, which has only padding there. Bits from `next` on and `unused` before it are left.
  /// nullopt if more bits were used than there are, the next marker is not `marker`, the window
  /// does not have all of the bytes, or they are not stray.
  std::optional<std::size_t> stray_before(int marker, const std::uint8_t* next,
                                          unsigned unused) const;
  /// Passes over the marker at the end, and begins anew behind it.
  void pass_marker();

 private:
  void fill(std::size_t kept, std::size_t wanted);
  void note_removed(std::size_t place);

  std::span<const std::uint8_t> scan_;
  std::size_t began_ = 0;
  std::size_t read_ = 0;
  /// How many bytes have left the window.
  std::size_t before_ = 0;
  /// The places in front of which a byte was taken out, in order, then one that is behind all; and
  /// how many `offset_of` is past.
  bool with_offsets_ = false;
  std::vector<std::size_t> removed_;
  std::size_t passed_ = 0;
  bool at_end_ = false;
  const std::uint8_t* end_ = nullptr;
  const std::uint8_t* limit_ = nullptr;
  std::array<std::uint8_t, window_bytes + reach + 64> window_;
};

}  // namespace millrace::jpeg
