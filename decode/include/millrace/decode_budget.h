// SPDX-License-Identifier: Apache-2.0
//
// A budget may be used by any thread at once; a lease belongs to one thread at a time.
#pragma once

#include <millrace/detail/export.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace MILLRACE_API millrace {

/// The default of `DecodeLimits::max_decode_bytes` for a process that may use so many bytes of
/// memory: a quarter of them, at most 512 MiB, and 512 MiB where the memory is unknown (0).
constexpr std::uint64_t decode_bytes_for(std::uint64_t memory_bytes) {
  constexpr std::uint64_t most = std::uint64_t{512} << 20;
  return memory_bytes == 0 || memory_bytes / 4 > most ? most : memory_bytes / 4;
}
/// That of this process: of the machine's memory, or what its control groups leave of it.
std::uint64_t default_decode_bytes();

/// What a hostile or damaged image may cost. An image beyond a limit is bad; the reason has the
/// image's value, the limit and its name here.
struct DecodeLimits {
  /// Pixels of an image, 1 to 250 million: a few hostile bytes can claim 65500 x 65500.
  std::uint64_t max_pixels = 100'000'000;
  /// Pixels for each byte of the file, at least 1. Huffman's code takes at least a bit for the 64
  /// pixels of a block, so what it holds as a whole has at most 512.
  std::uint64_t max_pixels_per_byte = 1000;
  /// Pixels of an image times its scans, at least 1: a scan of ten bytes makes the decoder walk
  /// over the whole image.
  std::uint64_t max_scan_pixels = 1'000'000'000;
  /// Memory in bytes, at least 1, for all images of more than `DecodeBudget::small_bytes` that the
  /// decoders of one budget have open at once. An image that needs more by itself is bad. An image
  /// takes 3 bytes for each pixel of its region and, if it is stored in several scans, 2 bytes for
  /// each pixel of each component as stored.
  std::uint64_t max_decode_bytes = default_decode_bytes();
};

/// The limits of some decoders, and the memory that they share: who needs much waits until the
/// others have given back enough. Waiting is all that it does; whether an image is bad never
/// depends on what else is under way.
class DecodeBudget {
 public:
  /// Images that need no more than this take nothing of the budget.
  static constexpr std::uint64_t small_bytes = std::uint64_t{32} << 20;

  /// A part of a budget, which must outlive it. The destructor gives it back.
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept { *this = std::move(other); }
    Lease& operator=(Lease&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Lease();

   private:
    friend class DecodeBudget;
    Lease(DecodeBudget* budget, std::uint64_t bytes) : budget_(budget), bytes_(bytes) {}

    DecodeBudget* budget_ = nullptr;
    std::uint64_t bytes_ = 0;
  };

  /// Throws `Error` (`invalid_argument`) for a limit of 0, and for more than 250 million
  /// `max_pixels`.
  explicit DecodeBudget(const DecodeLimits& limits = {});
  DecodeBudget(const DecodeBudget&) = delete;
  DecodeBudget& operator=(const DecodeBudget&) = delete;

  const DecodeLimits& limits() const { return limits_; }

  /// Takes memory for one image: nothing up to `small_bytes`, all there is for more than the
  /// budget. Waits until it is free; who called first is served first. A thread that holds a lease
  /// of this budget must not ask for another.
  Lease take(std::uint64_t bytes);

 private:
  const DecodeLimits limits_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t free_;
  /// Numbers of the next to come and the next to be served.
  std::uint64_t next_ = 0;
  std::uint64_t served_ = 0;
};

}  // namespace millrace
