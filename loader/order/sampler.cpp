// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/json_text.h>
#include <millrace/error.h>
#include <millrace/sampler.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <utility>

#include "order/order_mode.h"

namespace millrace {
namespace {

constexpr std::uint64_t max_records = std::uint64_t{1} << 63;

[[noreturn]] void refuse_plan(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, message, "plan");
}

void check_indices(std::span<const std::uint64_t> indices, std::uint64_t records) {
  for (std::size_t place = 0; place < indices.size(); ++place)
    if (indices[place] >= records)
      refuse_plan("order: index " + std::to_string(place) + " of the subset is " +
                  std::to_string(indices[place]) + ", but the dataset has " +
                  std::to_string(records) + " records");
}

/// Calls the function that accepts a variant's current alternative.
template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

/// XXH3-64 over the memory representation of numbers.
class Hash {
 public:
  Hash() { XXH3_64bits_reset(state_.get()); }
  void add(std::uint64_t number) { add(std::span<const std::uint64_t>(&number, 1)); }
  template <typename T>
  void add(std::span<const T> numbers) {
    static_assert(sizeof(T) >= 4 && std::endian::native == std::endian::little);
    XXH3_64bits_update(state_.get(), numbers.data(), numbers.size_bytes());
  }
  template <typename T>
  void add_list(const std::vector<T>& list) {
    add(list.size());
    add(std::span(list));
  }
  std::uint64_t digest() const { return XXH3_64bits_digest(state_.get()); }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_{XXH3_createState()};
};

}  // namespace

Sampler::Sampler(const Order& order, std::uint64_t records, std::uint64_t seed)
    : order_(order), records_(records), seed_(seed) {
  if (records == 0) refuse_plan("the dataset is empty");
  if (records > max_records)
    refuse_plan("the dataset has " + std::to_string(records) + " records, more than 2^63");
  if (order.indices_) check_indices(*order.indices_, records);
  const std::uint64_t count = order.indices_ ? order.indices_->size() : records;
  const auto check_count = [&](std::uint64_t expected, const std::string& what) {
    if (expected != count)
      refuse_plan("order: " + what + ", but the " + (order.indices_ ? "subset" : "dataset") +
                  " has " + std::to_string(count) + " records");
  };
  mode_ = std::visit(
      Overloaded{
          [&](const Order::Shuffled&) { return shuffled_mode(count, seed); },
          [&](const Order::Sequential&) { return sequential_mode(count); },
          [&](const Order::Blocks& blocks) { return block_mode(count, seed, blocks); },
          [&](const Order::Weighted& weighted) {
            const std::size_t weights = weighted.epochs.front().weights->size();
            check_count(weights, "there are " + std::to_string(weights) + " weights");
            for (const auto& [first_epoch, of_epoch] : weighted.epochs)
              tables_.push_back({first_epoch, alias_table(*of_epoch)});
            return weighted_mode(tables_, weighted.epoch_size, seed);
          },
          [&](const Order::Mixed& mixed) {
            std::uint64_t of_parts = 0;
            for (const Order::Part& part : *mixed.parts) of_parts += part.records;
            check_count(of_parts, "its parts have " + std::to_string(of_parts) + " records");
            return mixed_mode(*mixed.parts, mixed.epoch_size, seed);
          },
          [&](const Order::Bucketed& mode) {
            const Order::BucketData& bucketed = *mode.data;
            if (!bucketed.lengths)
              refuse_plan("order: the lengths of field \"" + cut(bucketed.field) +
                          "\" have not been read; call Order::measured");
            if (bucketed.lengths->size() != records)
              refuse_plan("order: there are " + std::to_string(bucketed.lengths->size()) +
                          " lengths, but the dataset has " + std::to_string(records) + " records");
            return bucketed_mode(bucketed.lengths, order.indices_, bucketed.buckets, seed);
          },
      },
      order.mode_);
  if (order.times_ > UINT64_MAX / mode_->epoch_size())
    refuse_plan("order: an epoch of " + std::to_string(mode_->epoch_size()) +
                " positions is repeated " + std::to_string(order.times_) +
                " times, which is too long to count");
  epoch_size_ = mode_->epoch_size() * order.times_;
}

std::uint64_t Sampler::at(std::uint64_t epoch, std::uint64_t offset) const {
  offsets_to_records(epoch, std::span(&offset, 1));
  return offset;
}

void Sampler::draw(std::span<const std::uint64_t> positions,
                   std::span<std::uint64_t> records) const {
  for (std::size_t begin = 0; begin < positions.size();) {
    const std::uint64_t epoch = positions[begin] / epoch_size_;
    const std::uint64_t start = epoch * epoch_size_;
    std::size_t end = begin;
    for (; end < positions.size() && end - begin < OrderMode::most && positions[end] >= start &&
           positions[end] - start < epoch_size_;
         ++end)
      records[end] = positions[end] - start;
    offsets_to_records(epoch, records.subspan(begin, end - begin));
    begin = end;
  }
}

/// Replaces at most `OrderMode::most` offsets by records.
void Sampler::offsets_to_records(std::uint64_t epoch, std::span<std::uint64_t> offsets) const {
  if (order_.times_ > 1)
    for (std::uint64_t& offset : offsets) offset /= order_.times_;
  mode_->draw(epoch, offsets);
  if (order_.indices_)
    for (std::uint64_t& offset : offsets) offset = (*order_.indices_)[offset];
}

std::uint64_t Sampler::replacement(Random& random, std::uint64_t epoch) const {
  const std::uint64_t number = mode_->replacement(epoch, random);
  return order_.indices_ ? (*order_.indices_)[number] : number;
}

Sampler::PreparedWeights Sampler::prepared(std::vector<double> weights) const {
  Order::Weights checked = order_.checked_new(std::move(weights));
  auto table = alias_table(*checked);
  return {std::move(checked), std::move(table)};
}

Sampler Sampler::reweighted(std::uint64_t epoch, const PreparedWeights& prepared) const {
  Sampler changed = *this;
  auto& weighted = std::get<Order::Weighted>(changed.order_.mode_);
  set_from_epoch(weighted.epochs, Order::EpochWeights{epoch, prepared.weights});
  set_from_epoch(changed.tables_, EpochTable{epoch, prepared.table});
  changed.mode_ = weighted_mode(changed.tables_, weighted.epoch_size, seed_);
  return changed;
}

Sampler Sampler::from_epoch(std::uint64_t epoch) const {
  Sampler later = *this;
  if (tables_.empty()) return later;
  auto& weighted = std::get<Order::Weighted>(later.order_.mode_);
  const auto forget = [epoch](auto& by_epoch) {
    by_epoch.erase(by_epoch.begin(),
                   by_epoch.begin() + static_cast<std::ptrdiff_t>(index_in_epoch(by_epoch, epoch)));
    by_epoch.front().first_epoch = 0;
  };
  forget(weighted.epochs);
  forget(later.tables_);
  later.mode_ = weighted_mode(later.tables_, weighted.epoch_size, seed_);
  return later;
}

std::vector<std::uint64_t> Sampler::reweighted_epochs() const {
  std::vector<std::uint64_t> epochs;
  for (const EpochTable& one : tables_)
    if (one.first_epoch > 0) epochs.push_back(one.first_epoch);
  return epochs;
}

std::uint64_t Sampler::hash(std::uint64_t epoch) const {
  // The length of each list is hashed before its elements, so that different orders never give the
  // same bytes. A mode's number is its index in the variant; it must never change.
  Hash hash;
  hash.add(records_);
  hash.add(order_.mode_.index());
  std::visit(Overloaded{
                 [](const Order::Shuffled&) {},
                 [](const Order::Sequential&) {},
                 [&](const Order::Blocks& blocks) {
                   hash.add(blocks.block_records);
                   hash.add(blocks.window_blocks);
                 },
                 [&](const Order::Weighted& weighted) {
                   hash.add(weighted.epoch_size);
                   const std::size_t in_force = index_in_epoch(weighted.epochs, epoch);
                   hash.add_list(*weighted.epochs[in_force].weights);
                 },
                 [&](const Order::Mixed& mixed) {
                   hash.add(mixed.epoch_size);
                   hash.add(mixed.parts->size());
                   for (const Order::Part& part : *mixed.parts) {
                     hash.add(part.records);
                     hash.add(std::bit_cast<std::uint64_t>(part.weight));
                   }
                 },
                 [&](const Order::Bucketed& mode) {
                   const Order::BucketData& bucketed = *mode.data;
                   hash.add(bucketed.buckets.window_records);
                   hash.add(bucketed.buckets.group_records);
                   hash.add_list(*bucketed.lengths);
                 },
             },
             order_.mode_);
  hash.add(order_.times_);
  hash.add(order_.indices_ ? 1 : 0);
  if (order_.indices_) hash.add_list(*order_.indices_);
  return hash.digest();
}

}  // namespace millrace
