// SPDX-License-Identifier: Apache-2.0
#include <millrace/decode_budget.h>
#include <millrace/detail/usable_memory.h>
#include <millrace/error.h>

#include <algorithm>
#include <string>

namespace millrace {

std::uint64_t default_decode_bytes() { return decode_bytes_for(usable_memory()); }

DecodeBudget::DecodeBudget(const DecodeLimits& limits)
    : limits_(limits), free_(limits.max_decode_bytes) {
  const auto check = [](const char* name, std::uint64_t limit) {
    if (limit == 0)
      throw Error(ErrorCode::invalid_argument, std::string(name) + " is 0; it is at least 1");
  };
  check("max_pixels", limits.max_pixels);
  // Offsets of an image's bytes are counted in an int.
  constexpr std::uint64_t max_allowed_pixels = 250'000'000;
  if (limits.max_pixels > max_allowed_pixels)
    throw Error(ErrorCode::invalid_argument, "max_pixels is " + std::to_string(limits.max_pixels) +
                                                 "; it is at most " +
                                                 std::to_string(max_allowed_pixels));
  check("max_pixels_per_byte", limits.max_pixels_per_byte);
  check("max_scan_pixels", limits.max_scan_pixels);
  check("max_decode_bytes", limits.max_decode_bytes);
}

DecodeBudget::Reservation DecodeBudget::take(std::uint64_t bytes) {
  if (bytes <= small_bytes) return {};
  bytes = std::min(bytes, limits_.max_decode_bytes);
  std::unique_lock lock(mutex_);
  // Serves requests in the order of the calls, so that small ones do not delay a large one forever.
  const std::uint64_t ticket = next_++;
  changed_.wait(lock, [&] { return served_ == ticket && free_ >= bytes; });
  ++served_;
  free_ -= bytes;
  changed_.notify_all();
  return {this, bytes};
}

DecodeBudget::Reservation::~Reservation() {
  if (budget_ == nullptr) return;
  const std::lock_guard lock(budget_->mutex_);
  budget_->free_ += bytes_;
  budget_->changed_.notify_all();
}

}  // namespace millrace
