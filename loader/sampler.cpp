// SPDX-License-Identifier: Apache-2.0
#include <millrace/error.h>
#include <millrace/sampler.h>

#include <bit>

namespace millrace {
namespace {

/// Rounds of the network: 4 suffice in theory for large halves, small domains need more to look uniform.
constexpr unsigned rounds = 8;

/// The finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace

Sampler::Sampler(std::uint64_t size, std::uint64_t seed, bool shuffle) : size_(size), seed_(seed), shuffle_(shuffle) {
  if (size == 0) throw Error(ErrorCode::invalid_argument, "there are no records to sample from");
  half_bits_ = (static_cast<unsigned>(std::bit_width(size - 1)) + 1) / 2;
}

std::uint64_t Sampler::at(std::uint64_t epoch, std::uint64_t offset) const {
  if (!shuffle_ || size_ == 1) return offset;
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  const std::uint64_t key = mix(seed_ + mix(epoch + 0x9E3779B97F4A7C15));
  std::uint64_t walked = offset;
  do {
    std::uint64_t left = walked >> half_bits_;
    std::uint64_t right = walked & mask;
    for (unsigned round = 0; round < rounds; ++round) {
      // The round's key is apart from the half's bits, so that no two rounds are the same function.
      const std::uint64_t f = mix(right ^ (key + round * 0xD1B54A32D192ED03)) >> 7;
      const std::uint64_t next = left ^ (f & mask);
      left = right;
      right = next;
    }
    walked = left << half_bits_ | right;
  } while (walked >= size_);
  return walked;
}

}  // namespace millrace
