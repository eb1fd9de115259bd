// SPDX-License-Identifier: Apache-2.0
//
// Modes without lists: sequential, shuffled, blocks.
#include <algorithm>
#include <array>

#include "order/order_mode.h"
#include "order/permutation.h"

namespace millrace {
namespace {

class UniformMode : public OrderMode {
 public:
  explicit UniformMode(std::uint64_t count) : count_(count) {}
  std::uint64_t epoch_size() const final { return count_; }
  std::uint64_t replacement(std::uint64_t /*epoch*/, Random& random) const final {
    return random.below(count_);
  }

 protected:
  std::uint64_t count() const { return count_; }

 private:
  const std::uint64_t count_;
};

class SequentialMode final : public UniformMode {
 public:
  using UniformMode::UniformMode;
  void draw(std::uint64_t, std::span<std::uint64_t>) const override {}
};

class ShuffledMode final : public UniformMode {
 public:
  ShuffledMode(std::uint64_t count, std::uint64_t seed) : UniformMode(count), seed_(seed) {}

  void draw(std::uint64_t epoch, std::span<std::uint64_t> offsets) const override {
    permute(count(), derived_key(seed_, epoch), offsets);
  }

 private:
  const std::uint64_t seed_;
};

/// Order of blocks. In each epoch, the dataset's last block, which may be short, gets a randomly
/// drawn place. The other blocks are permuted among the remaining places. To find a block by
/// division, offsets behind the short block are increased by the records that it lacks.
class BlockMode final : public UniformMode {
 public:
  BlockMode(std::uint64_t count, std::uint64_t seed, Order::Blocks blocks)
      : UniformMode(count),
        seed_(derived_key(seed, purpose)),
        block_(std::min(blocks.block_records, count)),
        full_blocks_((count - 1) / block_),
        lacking_(block_ - (count - full_blocks_ * block_)),
        window_(std::min(blocks.window_blocks, full_blocks_ + 1)) {}

  void draw(std::uint64_t epoch, std::span<std::uint64_t> offsets) const override {
    const std::uint64_t key = derived_key(seed_, epoch);
    const std::uint64_t last_place = Random(key, 0).below(full_blocks_ + 1);
    const std::uint64_t behind_last = last_place * block_ + (block_ - lacking_);
    const auto begin_of = [&](std::uint64_t place) {
      return place * block_ - (place > last_place ? lacking_ : 0);
    };
    const auto as_if_full = [&](std::uint64_t offset) {
      return offset < behind_last ? offset : offset + lacking_;
    };

    const std::size_t size = offsets.size();
    std::array<Permutation, most> permutations;
    std::array<std::uint64_t, most> begins;
    for (std::size_t n = 0; n < size; ++n) {
      const std::uint64_t window = as_if_full(offsets[n]) / block_ / window_;
      const std::uint64_t first = window * window_;
      begins[n] = begin_of(first);
      const std::uint64_t end =
          full_blocks_ + 1 - first <= window_ ? count() : begin_of(first + window_);
      permutations[n] = Permutation(end - begins[n], derived_key(key, window));
      offsets[n] -= begins[n];
    }
    Permutation::apply(std::span(permutations).first(size), offsets);

    const Permutation of_blocks(std::max<std::uint64_t>(full_blocks_, 1), key);
    std::array<std::uint64_t, most> within;
    for (std::size_t n = 0; n < size; ++n) {
      const std::uint64_t full = as_if_full(begins[n] + offsets[n]);
      const std::uint64_t place = full / block_;
      within[n] = full % block_;
      // The last block is not permuted.
      permutations[n] = place == last_place ? Permutation() : of_blocks;
      offsets[n] = place == last_place ? full_blocks_ : place - (place > last_place ? 1 : 0);
    }
    Permutation::apply(std::span(permutations).first(size), offsets);
    for (std::size_t n = 0; n < size; ++n) offsets[n] = offsets[n] * block_ + within[n];
  }

 private:
  static constexpr std::uint64_t purpose = 0x626C6F636B73;  // keeps the keys of modes distinct

  const std::uint64_t seed_;
  const std::uint64_t block_;
  const std::uint64_t full_blocks_;
  const std::uint64_t lacking_;
  const std::uint64_t window_;
};

}  // namespace

std::shared_ptr<const OrderMode> sequential_mode(std::uint64_t count) {
  return std::make_shared<SequentialMode>(count);
}

std::shared_ptr<const OrderMode> shuffled_mode(std::uint64_t count, std::uint64_t seed) {
  return std::make_shared<ShuffledMode>(count, seed);
}

std::shared_ptr<const OrderMode> block_mode(std::uint64_t count, std::uint64_t seed,
                                            Order::Blocks blocks) {
  return std::make_shared<BlockMode>(count, seed, blocks);
}

}  // namespace millrace
