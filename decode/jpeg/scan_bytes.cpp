// SPDX-License-Identifier: Apache-2.0
#include "jpeg/scan_bytes.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace millrace::jpeg {
namespace {

constexpr std::size_t behind_all = std::numeric_limits<std::size_t>::max();

}  // namespace

bool are_stray(std::span<const std::uint8_t> bytes, std::size_t in_file) {
  return in_file <= max_stray_bytes ||
         std::ranges::all_of(bytes, [](std::uint8_t byte) { return byte == 0; });
}

std::optional<std::size_t> offset_behind(int marker, std::span<const std::uint8_t> scan,
                                         std::size_t begin) {
  while (begin + 1 < scan.size()) {
    const void* const found = std::memchr(scan.data() + begin, 0xFF, scan.size() - 1 - begin);
    if (found == nullptr) return std::nullopt;
    const auto at = static_cast<std::size_t>(static_cast<const std::uint8_t*>(found) - scan.data());
    begin = at + 2;
    if (scan[at + 1] == marker) return begin;
    if (scan[at + 1] != 0) return std::nullopt;
  }
  return std::nullopt;
}

void ScanBytes::begin(std::span<const std::uint8_t> scan, std::size_t offset, std::size_t wanted,
                      bool with_offsets) {
  scan_ = scan;
  with_offsets_ = with_offsets;
  began_ = read_ = offset;
  before_ = passed_ = 0;
  removed_.assign(1, behind_all);
  at_end_ = false;
  fill(0, wanted + reach);
}

bool ScanBytes::ensure(const std::uint8_t*& next) {
  if (next < limit_) return true;
  if (at_end_) return next <= end_ + past_end;
  const auto kept = static_cast<std::size_t>(end_ - next);
  before_ += static_cast<std::size_t>(next - window_.data());
  std::memmove(window_.data(), next, kept);
  next = window_.data();
  fill(kept, window_bytes);
  return true;
}

/// Fills the window after the `kept` bytes, up to `wanted` bytes in all.
void ScanBytes::fill(std::size_t kept, std::size_t wanted) {
  std::uint8_t* to = window_.data() + kept;
  std::uint8_t* const full = window_.data() + std::min(wanted, window_bytes);
  while (to < full && !at_end_) {
    const std::uint8_t* from = scan_.data() + read_;
    const std::size_t most = std::min(static_cast<std::size_t>(full - to), scan_.size() - read_);
    const auto* marked =
        most > 0 ? static_cast<const std::uint8_t*>(std::memchr(from, 0xFF, most)) : nullptr;
    const std::size_t plain = marked != nullptr ? static_cast<std::size_t>(marked - from) : most;
    std::memcpy(to, from, plain);
    to += plain;
    read_ += plain;
    if (marked == nullptr) {
      at_end_ = read_ == scan_.size();
    } else if (read_ + 1 < scan_.size() && scan_[read_ + 1] == 0) {
      *to++ = 0xFF;
      read_ += 2;
      if (with_offsets_) note_removed(place_of(to));
    } else {
      at_end_ = true;
    }
  }
  end_ = to;
  // A block takes at most 248 bytes, so no pixel depends on the last of these zeros. They keep
  // bytes of earlier scans out of every read that `reach` allows.
  std::memset(to, 0, reach + past_end);
  limit_ = at_end_ ? to : to - reach;
}

void ScanBytes::note_removed(std::size_t place) {
  // In this order the list ends with `behind_all` even if `push_back` throws.
  removed_.push_back(behind_all);
  removed_[removed_.size() - 2] = place;
}

std::size_t ScanBytes::offset_of(std::size_t place) {
  // Usually few bytes are removed between two tiles, but a branch on their count is hard to
  // predict. So the first three are counted without branches.
  const std::size_t* next = removed_.data() + passed_;
  for (int n = 0; n < 3; ++n) next += *next <= place ? 1 : 0;
  while (*next <= place) ++next;
  passed_ = static_cast<std::size_t>(next - removed_.data());
  return began_ + place + passed_;
}

std::ptrdiff_t ScanBytes::bits_left(const std::uint8_t* next) const {
  return at_end_ ? 8 * (end_ - next) : std::ptrdiff_t{1} << 32;
}

std::optional<std::size_t> ScanBytes::stray_before(int marker, const std::uint8_t* next,
                                                   unsigned unused) const {
  const std::ptrdiff_t left = bits_left(next) + static_cast<std::ptrdiff_t>(unused);
  if (!at_end_ || left < 0 || read_ + 1 >= scan_.size() || scan_[read_ + 1] != marker)
    return std::nullopt;
  const auto stray = static_cast<std::size_t>(left / 8);
  if (stray == 0) return stray;
  if (static_cast<std::ptrdiff_t>(stray) > end_ - window_.data()) return std::nullopt;
  const std::span<const std::uint8_t> bytes{end_ - stray, stray};
  const auto stuffed = static_cast<std::size_t>(std::ranges::count(bytes, 0xFF));
  if (!are_stray(bytes, stray + stuffed)) return std::nullopt;
  return stray;
}

void ScanBytes::pass_marker() {
  read_ += 2;
  before_ = place_of(end_);
  if (with_offsets_)
    for (int n = 0; n < 2; ++n) note_removed(before_);
  at_end_ = false;
  fill(0, window_bytes);
}

}  // namespace millrace::jpeg
