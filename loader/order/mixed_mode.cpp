// SPDX-License-Identifier: Apache-2.0
#include <millrace/error.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>

#include "order/order_mode.h"
#include "order/permutation.h"

namespace millrace {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr unsigned fewest_run_bits = 10;
constexpr unsigned max_run_bits = 24;

/// Returns the number of positions of each part in a segment (`run`), by the method of largest
/// remainders.
std::vector<std::uint64_t> shares_of_run(std::uint64_t run, std::span<const std::uint64_t> weights,
                                         std::uint64_t sum) {
  std::vector<std::uint64_t> shares;
  std::vector<std::uint64_t> remainders;
  for (const std::uint64_t weight : weights) {
    shares.push_back(static_cast<std::uint64_t>(Wide{weight} * run / sum));
    remainders.push_back(static_cast<std::uint64_t>(Wide{weight} * run % sum));
  }
  std::vector<std::size_t> by_remainder(weights.size());
  std::iota(by_remainder.begin(), by_remainder.end(), 0);
  std::ranges::stable_sort(by_remainder, std::greater<>(),
                           [&](std::size_t part) { return remainders[part]; });
  std::uint64_t left = std::accumulate(shares.begin(), shares.end(), run, std::minus<>());
  for (auto part = by_remainder.begin(); left > 0; ++part, --left) ++shares[*part];
  return shares;
}

bool within_one_percent(std::uint64_t share, std::uint64_t run, std::uint64_t weight,
                        std::uint64_t sum) {
  const Wide is = Wide{share} * sum;
  const Wide should_be = Wide{weight} * run;
  return 100 * (is > should_be ? is - should_be : should_be - is) <= should_be;
}

/// A part with a share above 0.
struct PartShare {
  std::uint64_t first_record;
  std::uint64_t records;
  /// Begin and length of its range of a segment's permuted positions.
  std::uint64_t begin;
  std::uint64_t share;
  std::uint64_t key;
};

/// Permutes the positions of each segment (`run_` positions), and divides the permuted positions
/// into one range per part. The positions in a part's range are its next draws. A part's draws use
/// its records in the order of one permutation per pass.
class MixedMode final : public OrderMode {
 public:
  MixedMode(std::span<const Order::Part> parts, std::uint64_t epoch_size, std::uint64_t seed)
      : epoch_size_(epoch_size), run_key_(derived_key(seed, purpose)) {
    std::vector<double> weights;
    for (const Order::Part& part : parts) weights.push_back(part.weight);
    const std::vector<std::uint64_t> shares = choose_run(weights);
    std::uint64_t first_record = 0;
    std::uint64_t begin = 0;
    for (std::size_t number = 0; number < parts.size(); ++number) {
      if (shares[number] > 0)
        shares_.push_back({first_record, parts[number].records, begin, shares[number],
                           derived_key(run_key_, ~number)});
      first_record += parts[number].records;
      begin += shares[number];
    }
  }

  std::uint64_t epoch_size() const override { return epoch_size_; }

  std::uint64_t replacement(std::uint64_t /*epoch*/, Random& random) const override {
    const PartShare& part = part_at(random.below(run_));
    return part.first_record + random.below(part.records);
  }

  void draw(std::uint64_t epoch, std::span<std::uint64_t> offsets) const override {
    const std::size_t size = offsets.size();
    std::array<Permutation, most> permutations;
    std::array<std::uint64_t, most> runs;
    for (std::size_t n = 0; n < size; ++n) {
      const std::uint64_t position = epoch * epoch_size_ + offsets[n];
      runs[n] = position / run_;
      offsets[n] = position % run_;
      permutations[n] = Permutation(run_, derived_key(run_key_, runs[n]));
    }
    Permutation::apply(std::span(permutations).first(size), offsets);

    std::array<std::uint64_t, most> first_records;
    for (std::size_t n = 0; n < size; ++n) {
      const PartShare& part = part_at(offsets[n]);
      const std::uint64_t drawn = runs[n] * part.share + (offsets[n] - part.begin);
      first_records[n] = part.first_record;
      permutations[n] = Permutation(part.records, derived_key(part.key, drawn / part.records));
      offsets[n] = drawn % part.records;
    }
    Permutation::apply(std::span(permutations).first(size), offsets);
    for (std::size_t n = 0; n < size; ++n) offsets[n] += first_records[n];
  }

 private:
  static constexpr std::uint64_t purpose = 0x6D69786564;  // keeps the keys of modes distinct

  /// Chooses the length of a segment (`run_`), and returns the number of positions of each part in
  /// it.
  std::vector<std::uint64_t> choose_run(std::span<const double> weights) {
    const std::vector<std::uint64_t> integers = integer_weights(weights);
    const std::uint64_t sum = std::accumulate(integers.begin(), integers.end(), std::uint64_t{0});
    for (unsigned bits = fewest_run_bits;; bits += 2) {
      run_ = std::uint64_t{1} << bits;
      std::vector<std::uint64_t> shares = shares_of_run(run_, integers, sum);
      bool right = true;
      for (std::size_t number = 0; number < shares.size(); ++number) {
        right = right && within_one_percent(shares[number], run_, integers[number], sum);
        if (bits == max_run_bits && shares[number] == 0 && integers[number] > 0)
          throw Error(ErrorCode::invalid_argument,
                      "order: the weight of part " + std::to_string(number) + " is " +
                          weight_text(weights[number]) + ", less than one sample in 2^" +
                          std::to_string(max_run_bits) +
                          ": the part would never be drawn; increase the weight, or set it to 0 to "
                          "leave the part out");
      }
      if (right || bits == max_run_bits) return shares;
    }
  }

  const PartShare& part_at(std::uint64_t place) const {
    return *(std::ranges::upper_bound(shares_, place, {}, &PartShare::begin) - 1);
  }

  const std::uint64_t epoch_size_;
  const std::uint64_t run_key_;
  std::uint64_t run_ = 0;
  std::vector<PartShare> shares_;
};

}  // namespace

std::shared_ptr<const OrderMode> mixed_mode(std::span<const Order::Part> parts,
                                            std::uint64_t epoch_size, std::uint64_t seed) {
  return std::make_shared<MixedMode>(parts, epoch_size, seed);
}

}  // namespace millrace
