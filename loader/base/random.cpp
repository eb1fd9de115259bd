// SPDX-License-Identifier: Apache-2.0
#include <millrace/random.h>

#include "base/philox.h"

namespace millrace {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(first)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

Random::Random(std::uint64_t seed, std::uint64_t position, std::uint32_t substream)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
      counter_{0, substream, static_cast<std::uint32_t>(position),
               static_cast<std::uint32_t>(position >> 32)} {}

Random::result_type Random::operator()() {
  if (used_ == block_.size()) {
    block_ = philox4x32(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[used_++];
}

std::uint64_t Random::bits64() {
  const std::uint64_t low = (*this)();
  return low | std::uint64_t{(*this)()} << 32;
}

double Random::uniform() { return static_cast<double>(bits64() >> 11) * 0x1.0p-53; }

// This function is not inline and is compiled with -ffp-contract=off: a fused multiply-add would
// change the last bits.
double Random::uniform(double low, double high) { return low + uniform() * (high - low); }

std::uint64_t Random::below(std::uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  Wide product = Wide{bits64()} * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (static_cast<std::uint64_t>(product) < threshold) product = Wide{bits64()} * bound;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

}  // namespace millrace
