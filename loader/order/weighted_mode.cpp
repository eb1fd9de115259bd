// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <utility>

#include "order/order_mode.h"

namespace millrace {

/// The alias method: as many columns as numbers, all of the same height. At most two numbers share
/// a column. The table is built with integers, so it has no rounding remainder, and a weight of 0
/// has no share at all.
class AliasTable {
 public:
  explicit AliasTable(std::span<const double> weights) : columns_(weights.size()) {
    std::vector<Wide> masses;
    masses.reserve(weights.size());
    Wide height = 0;
    for (const std::uint64_t weight : integer_weights(weights)) {
      height += weight;
      masses.push_back(Wide{weight} * weights.size());
    }
    std::vector<std::uint64_t> low;
    std::vector<std::uint64_t> high;
    for (std::uint64_t number = 0; number < masses.size(); ++number) {
      columns_[number] = {UINT64_MAX, number};
      (masses[number] < height ? low : high).push_back(number);
    }
    while (!low.empty()) {
      const std::uint64_t number = low.back();
      low.pop_back();
      const std::uint64_t donor = high.back();
      // A mass below `height` exists, so `height` is above 0.
      // NOLINTNEXTLINE(clang-analyzer-core.DivideZero)
      columns_[number] = {static_cast<std::uint64_t>((masses[number] << 64) / height), donor};
      masses[donor] -= height - masses[number];
      if (masses[donor] >= height) continue;
      high.pop_back();
      low.push_back(donor);
    }
  }

  /// The random part of a draw.
  struct Throw {
    std::uint64_t column;
    std::uint64_t height;
  };
  Throw prepare(Random& random) const {
    const std::uint64_t column = random.below(columns_.size());
    return {column, random.bits64()};
  }
  /// Prefetches the column of a draw whose result is needed soon.
  void fetch(const Throw& thrown) const { __builtin_prefetch(&columns_[thrown.column]); }
  std::uint64_t result(const Throw& thrown) const {
    const Column& column = columns_[thrown.column];
    // Branch-free: a branch would often mispredict, and would wait for the memory.
    const std::uint64_t own = 0 - std::uint64_t{thrown.height < column.threshold};
    return (thrown.column & own) | (column.alias & ~own);
  }

 private:
  __extension__ using Wide = unsigned __int128;
  struct Column {
    /// Share of the column's own number, out of 2^64.
    std::uint64_t threshold;
    /// Number to which the rest of the column belongs.
    std::uint64_t alias;
  };
  std::vector<Column> columns_;
};

namespace {

class WeightedMode final : public OrderMode {
 public:
  WeightedMode(std::vector<EpochTable> tables, std::uint64_t epoch_size, std::uint64_t seed)
      : tables_(std::move(tables)), epoch_size_(epoch_size), seed_(seed) {}

  std::uint64_t epoch_size() const override { return epoch_size_; }
  std::uint64_t replacement(std::uint64_t epoch, Random& random) const override {
    const AliasTable& table = table_of(epoch);
    return table.result(table.prepare(random));
  }

  void draw(std::uint64_t epoch, std::span<std::uint64_t> offsets) const override {
    const AliasTable& table = table_of(epoch);
    std::array<AliasTable::Throw, most> throws;
    for (std::size_t n = 0; n < offsets.size(); ++n) {
      Random random(seed_, epoch * epoch_size_ + offsets[n], order_stream);
      throws[n] = table.prepare(random);
      table.fetch(throws[n]);
    }
    for (std::size_t n = 0; n < offsets.size(); ++n) offsets[n] = table.result(throws[n]);
  }

 private:
  static constexpr std::uint32_t order_stream = 17;  // as listed in random.h

  const AliasTable& table_of(std::uint64_t epoch) const {
    return *tables_[index_in_epoch(tables_, epoch)].table;
  }

  const std::vector<EpochTable> tables_;
  const std::uint64_t epoch_size_;
  const std::uint64_t seed_;
};

}  // namespace

std::vector<std::uint64_t> integer_weights(std::span<const double> weights) {
  const double largest = *std::ranges::max_element(weights);
  const int bits = 62 - static_cast<int>(std::bit_width(weights.size() - 1));
  std::vector<std::uint64_t> integers;
  integers.reserve(weights.size());
  for (const double weight : weights) {
    const auto integer = static_cast<std::uint64_t>(std::ldexp(weight / largest, bits));
    integers.push_back(weight > 0 ? std::max<std::uint64_t>(integer, 1) : 0);
  }
  return integers;
}

std::string weight_text(double weight) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.begin(), text.end(), weight).ptr};
}

std::shared_ptr<const AliasTable> alias_table(std::span<const double> weights) {
  return std::make_shared<const AliasTable>(weights);
}

std::shared_ptr<const OrderMode> weighted_mode(std::vector<EpochTable> tables,
                                               std::uint64_t epoch_size, std::uint64_t seed) {
  return std::make_shared<WeightedMode>(std::move(tables), epoch_size, seed);
}

}  // namespace millrace
