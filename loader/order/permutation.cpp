// SPDX-License-Identifier: Apache-2.0
#include "order/permutation.h"

#include <millrace/random.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

namespace millrace {
namespace {

/// Rounds of the network. In theory 4 suffice for large domains. Permutations of small domains need
/// more rounds to look uniform.
constexpr unsigned rounds = 8;
constexpr std::size_t lanes_at_once = 4;
constexpr std::size_t chunk = 64;

/// The finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace

std::uint64_t derived_key(std::uint64_t key, std::uint64_t number) {
  return mix(key + mix(number + 0x9E3779B97F4A7C15));
}

Permutation::Permutation(std::uint64_t size, std::uint64_t key)
    : size_(size),
      key_(key),
      half_bits_((static_cast<unsigned>(std::bit_width(size - 1)) + 1) / 2) {
  mask_ = (std::uint64_t{1} << half_bits_) - 1;
}

/// Passes each value once through its network. The lanes' multiplications overlap.
template <std::size_t lanes>
void Permutation::pass(const Permutation* const (&permutations)[lanes],
                       std::uint64_t (&values)[lanes]) {
  std::uint64_t left[lanes];
  std::uint64_t right[lanes];
  std::uint64_t key[lanes];
  std::uint64_t mask[lanes];
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    key[lane] = permutations[lane]->key_;
    mask[lane] = permutations[lane]->mask_;
    left[lane] = values[lane] >> permutations[lane]->half_bits_;
    right[lane] = values[lane] & mask[lane];
  }
  for (unsigned round = 0; round < rounds; ++round)
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      // The round's key does not overlap the bits of the half, so all rounds are different
      // functions.
      const std::uint64_t f = mix(right[lane] ^ (key[lane] + round * 0xD1B54A32D192ED03)) >> 7;
      const std::uint64_t next = left[lane] ^ (f & mask[lane]);
      left[lane] = right[lane];
      right[lane] = next;
    }
  for (std::size_t lane = 0; lane < lanes; ++lane)
    values[lane] = left[lane] << permutations[lane]->half_bits_ | right[lane];
}

std::uint64_t Permutation::operator()(std::uint64_t place) const {
  if (size_ == 1) return place;
  std::uint64_t value[] = {place};
  do pass<1>({this}, value);
  while (value[0] >= size_);
  return value[0];
}

void Permutation::apply(std::span<const Permutation> permutations,
                        std::span<std::uint64_t> places) {
  for (; places.size() > chunk;
       permutations = permutations.subspan(chunk), places = places.subspan(chunk))
    apply(permutations.first(chunk), places.first(chunk));

  // Indices of the values that are still outside of their range. Each iteration passes all of these
  // values once through their networks.
  std::array<std::uint8_t, chunk> outside;
  std::size_t left = 0;
  for (std::size_t n = 0; n < places.size(); ++n) {
    outside[left] = static_cast<std::uint8_t>(n);
    left += permutations[n].size_ > 1 ? 1 : 0;
  }
  while (left > 0) {
    std::size_t still = 0;
    const auto note = [&](std::size_t n, std::uint64_t value) {
      const std::uint8_t which = outside[n];
      places[which] = value;
      outside[still] = which;
      still += value >= permutations[which].size_ ? 1 : 0;
    };
    std::size_t n = 0;
    for (; n + lanes_at_once <= left; n += lanes_at_once) {
      const Permutation* by[lanes_at_once];
      std::uint64_t values[lanes_at_once];
      for (std::size_t lane = 0; lane < lanes_at_once; ++lane) {
        by[lane] = &permutations[outside[n + lane]];
        values[lane] = places[outside[n + lane]];
      }
      pass<lanes_at_once>(by, values);
      for (std::size_t lane = 0; lane < lanes_at_once; ++lane) note(n + lane, values[lane]);
    }
    for (; n < left; ++n) {
      std::uint64_t value[] = {places[outside[n]]};
      pass<1>({&permutations[outside[n]]}, value);
      note(n, value[0]);
    }
    left = still;
  }
}

/// Source of the shuffle for small sizes: Durstenfeld, "Algorithm 235: Random permutation",
/// Communications of the ACM, 1964.
void permute(std::uint64_t size, std::uint64_t key, std::span<std::uint64_t> places) {
  if (size > chunk) {
    const Permutation one(size, key);
    if (places.size() == 1) {
      places[0] = one(places[0]);
      return;
    }
    std::array<Permutation, chunk> permutations;
    std::fill_n(permutations.begin(), places.size(), one);
    Permutation::apply(std::span(permutations).first(places.size()), places);
    return;
  }
  std::array<std::uint64_t, chunk> numbers;
  std::iota(numbers.begin(), numbers.end(), 0);
  Random random(key, size);
  for (std::uint64_t left = size; left > 1; --left)
    std::swap(numbers[left - 1], numbers[random.below(left)]);
  for (std::uint64_t& place : places) place = numbers[place];
}

}  // namespace millrace
