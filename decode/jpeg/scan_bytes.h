// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace millrace::jpeg {

/// The first of the eight restart markers, which occur in cyclic order.
inline constexpr int first_restart = 0xD0;

/// Limit on stray bytes of any value before an expected marker. Damaged scans often have more.
inline constexpr std::size_t max_stray_bytes = 4;

/// Returns whether bytes before a marker are stray and may be skipped: at most `max_stray_bytes`,
/// or all zero. `in_file` is their number in the file, with the zeros that are stuffed after each
/// FF.
bool are_stray(std::span<const std::uint8_t> bytes, std::size_t in_file);

/// Finds the first marker of a scan from byte `begin` on. Returns the offset after it if it is
/// `marker`, else nullopt. A fill byte FF before a marker counts as another marker.
std::optional<std::size_t> offset_behind(int marker, std::span<const std::uint8_t> scan,
                                         std::size_t begin);

/// The entropy-coded bytes of a scan without the zeros that are stuffed after each FF (T.81,
/// B.1.1.5). They are copied to a window, so that readers need not look for markers. Zeros follow
/// the last byte before a marker or before the file's end.
class ScanBytes {
 public:
  /// Bytes from `next` on that may be read without another call of `ensure`.
  static constexpr std::size_t reach = 512;
  /// Number of bytes by which a reader's position may exceed the data: its bit buffer holds as
  /// many.
  static constexpr std::size_t past_end = 8;
  /// The largest number of bytes in the window.
  static constexpr std::size_t window_bytes = 8192;

  /// Begins to read at byte `offset` of a scan, which must be below its size or 0. About `wanted`
  /// bytes will be read from there. The scan must outlive the following calls. `offset_of` needs
  /// `with_offsets`.
  void begin(std::span<const std::uint8_t> scan, std::size_t offset = 0,
             std::size_t wanted = window_bytes, bool with_offsets = false);

  /// The window's first byte, and its limit: `reach` bytes may be read from any position before the
  /// limit.
  const std::uint8_t* first() const { return window_.data(); }
  const std::uint8_t* limit() const { return limit_; }
  /// If `next` is at or after the limit, moves the window forward and adjusts `next`. Returns false
  /// if only zeros are left: `next` is then more than `past_end` bytes after the last byte.
  bool ensure(const std::uint8_t*& next);

  /// Returns the number of bytes from the start of reading to `next`: in earlier windows and in
  /// this one.
  std::size_t place_of(const std::uint8_t* next) const {
    return before_ + static_cast<std::size_t>(next - window_.data());
  }
  /// Returns the offset in the scan of the byte at `place`, a result of `place_of`. For a marker's
  /// place it is the offset after the marker. Places must not decrease from one call to the next.
  std::size_t offset_of(std::size_t place);

  /// Returns the number of bits from the byte `next` to the last byte's end; negative if `next` is
  /// after it. If the window does not have the last byte, the result is more than 64.
  std::ptrdiff_t bits_left(const std::uint8_t* next) const;

  /// Returns the number of whole bytes between the last used bit and the scan's next marker. It is
  /// 0 in a valid scan, which has only padding there. The unused bits are those from `next` on and
  /// `unused` bits before it. Returns nullopt if more bits were used than exist, or if the next
  /// marker is not `marker`. Also returns nullopt if the window lacks some of the bytes, or if they
  /// must not be skipped (`are_stray`).
  std::optional<std::size_t> stray_before(int marker, const std::uint8_t* next,
                                          unsigned unused) const;
  /// Skips the marker at which the bytes end, and begins to read after it.
  void pass_marker();

 private:
  void fill(std::size_t kept, std::size_t wanted);
  void note_removed(std::size_t place);

  std::span<const std::uint8_t> scan_;
  std::size_t began_ = 0;
  std::size_t read_ = 0;
  /// Number of bytes of earlier windows.
  std::size_t before_ = 0;
  /// The places before which a byte was removed, in order, then a place after all others. `passed_`
  /// is the number of places that `offset_of` has passed.
  bool with_offsets_ = false;
  std::vector<std::size_t> removed_;
  std::size_t passed_ = 0;
  bool at_end_ = false;
  const std::uint8_t* end_ = nullptr;
  const std::uint8_t* limit_ = nullptr;
  std::array<std::uint8_t, window_bytes + reach + 64> window_;
};

}  // namespace millrace::jpeg
