// SPDX-License-Identifier: Apache-2.0
//
// Limits on the memory and cost of decoding.
//
// Threads: `DecodeBudget` is thread-safe. A reservation belongs to one thread at a time.
#pragma once

#include <millrace/detail/export.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace MILLRACE_API millrace {

/// Returns the default of `DecodeLimits::max_decode_bytes` for a process that may use
/// `memory_bytes` bytes of memory. It is a quarter of this memory, at most 512 MiB. It is 512 MiB
/// if the memory is unknown (0).
constexpr std::uint64_t decode_bytes_for(std::uint64_t memory_bytes) {
  constexpr std::uint64_t most = std::uint64_t{512} << 20;
  return memory_bytes == 0 || memory_bytes / 4 > most ? most : memory_bytes / 4;
}
/// Returns the same default for this process. Its memory is that of the machine, or less if the
/// process's control groups allow less.
std::uint64_t default_decode_bytes();

/// Limits on the cost of a hostile or damaged image. An image beyond a limit is bad. The reason in
/// its status names the image's value, the limit, and the limit's member name below.
struct DecodeLimits {
  /// Pixels of an image, 1 to 250 million. A few hostile bytes can claim 65500 x 65500.
  std::uint64_t max_pixels = 100'000'000;
  /// Pixels for each byte of the file, at least 1. Huffman's code takes at least one bit for the 64
  /// pixels of a block. So a complete Huffman-coded image has at most 512 pixels for each byte.
  std::uint64_t max_pixels_per_byte = 1000;
  /// Pixels of an image times its scans, at least 1. Even a scan of ten bytes can make the decoder
  /// process every block of the image.
  std::uint64_t max_scan_pixels = 1'000'000'000;
  /// Memory in bytes, at least 1, that the decoders of one budget may hold at once. Only images
  /// that need more than `DecodeBudget::small_bytes` count. An image that alone needs more than
  /// this limit is bad. An image takes 3 bytes for each pixel of its region. An image stored in
  /// several scans also takes 2 bytes for each pixel of each component as stored.
  std::uint64_t max_decode_bytes = default_decode_bytes();
};

/// The limits that several decoders have in common, and the memory that they share. A decoder that
/// needs much memory waits until the others have given back enough. Waiting is the only effect:
/// whether an image is bad never depends on the other images in progress.
class DecodeBudget {
 public:
  /// Images that need at most this many bytes take nothing from the budget.
  static constexpr std::uint64_t small_bytes = std::uint64_t{32} << 20;

  /// A share of a budget. The budget must outlive it. The destructor gives the share back.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(Reservation&& other) noexcept { *this = std::move(other); }
    Reservation& operator=(Reservation&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Reservation();

   private:
    friend class DecodeBudget;
    Reservation(DecodeBudget* budget, std::uint64_t bytes) : budget_(budget), bytes_(bytes) {}

    DecodeBudget* budget_ = nullptr;
    std::uint64_t bytes_ = 0;
  };

  /// Throws `Error` (`invalid_argument`) for a limit of 0, and for more than 250 million
  /// `max_pixels`.
  explicit DecodeBudget(const DecodeLimits& limits = {});
  DecodeBudget(const DecodeBudget&) = delete;
  DecodeBudget& operator=(const DecodeBudget&) = delete;

  const DecodeLimits& limits() const { return limits_; }

  /// Takes memory for one image. Takes nothing if `bytes` <= `small_bytes`. Takes the whole budget
  /// if `bytes` is larger than the budget. Waits until the memory is free. Callers are served in
  /// the order of their calls. A thread that holds a reservation of this budget must not ask for
  /// another one.
  Reservation take(std::uint64_t bytes);

 private:
  const DecodeLimits limits_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t free_;
  /// The ticket that the next caller of `take` gets.
  std::uint64_t next_ = 0;
  /// The ticket that is served next.
  std::uint64_t served_ = 0;
};

}  // namespace millrace
