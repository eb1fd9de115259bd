// SPDX-License-Identifier: Apache-2.0
#include <millrace/error.h>
#include <millrace/order.h>
#include <millrace/record_lengths.h>

#include <cmath>
#include <string>
#include <utility>

#include "order/order_mode.h"

namespace millrace {
namespace {

[[noreturn]] void refuse_order(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, "order: " + message);
}

/// Throws for an invalid weight. `place` names the weight in the message.
void check_weight(double weight, const std::string& place) {
  if (!std::isfinite(weight) || weight < 0)
    refuse_order(place + " is " + weight_text(weight) +
                 "; it must be a finite number and not negative");
}

}  // namespace

Order Order::sequential() {
  Order order;
  order.mode_ = Sequential();
  return order;
}

Order Order::blocks(Blocks blocks) {
  if (blocks.block_records == 0)
    refuse_order("block_records is 0; a block has at least one record");
  if (blocks.window_blocks == 0)
    refuse_order("window_blocks is 0; a window has at least one block");
  Order order;
  order.mode_ = blocks;
  return order;
}

Order Order::checked(BucketData data) {
  Buckets& buckets = data.buckets;
  if (buckets.group_records == 0)
    refuse_order("group_records is 0; it is the global batch: the batch size by the ranks");
  if (buckets.window_records == 0)
    refuse_order("window_records is 0; a window has at least one group");
  if (buckets.window_records < buckets.group_records)
    refuse_order("window_records is " + std::to_string(buckets.window_records) +
                 ", less than group_records, " + std::to_string(buckets.group_records));
  if (buckets.window_records > std::uint64_t{1} << 32)
    refuse_order("window_records is " + std::to_string(buckets.window_records) +
                 "; a window has at most 2^32 records");
  buckets.window_records -= buckets.window_records % buckets.group_records;
  Order order;
  order.mode_ = Bucketed{std::make_shared<const BucketData>(std::move(data))};
  return order;
}

Order Order::bucketed(std::vector<std::uint32_t> lengths, Buckets buckets) {
  if (lengths.empty()) refuse_order("there are no lengths; it takes one per record");
  return checked(
      {std::make_shared<const std::vector<std::uint32_t>>(std::move(lengths)), {}, buckets});
}

Order Order::bucketed_by(std::string field, Buckets buckets) {
  if (field.empty()) refuse_order("the field whose lengths are to be read has no name");
  return checked({nullptr, std::move(field), buckets});
}

Order Order::measured(const Dataset& dataset) const {
  Order order = *this;
  if (auto* bucketed = std::get_if<Bucketed>(&order.mode_); bucketed && !bucketed->data->lengths) {
    BucketData data = *bucketed->data;
    data.lengths =
        std::make_shared<const std::vector<std::uint32_t>>(record_lengths(dataset, data.field));
    bucketed->data = std::make_shared<const BucketData>(std::move(data));
  }
  return order;
}

Order::Weights Order::checked(std::vector<double> weights) {
  if (weights.empty()) refuse_order("there are no weights; it takes one per record");
  bool any = false;
  for (std::size_t record = 0; record < weights.size(); ++record) {
    check_weight(weights[record], "weight " + std::to_string(record));
    any = any || weights[record] > 0;
  }
  if (!any)
    refuse_order("all " + std::to_string(weights.size()) +
                 " weights are 0; at least one must be positive");
  return std::make_shared<const std::vector<double>>(std::move(weights));
}

Order::Weights Order::checked_new(std::vector<double> weights) const {
  const auto* weighted = std::get_if<Weighted>(&mode_);
  if (weighted == nullptr) refuse_order("it has no weights to change; make it by Order::weighted");
  Weights checked_weights = checked(std::move(weights));
  const std::size_t before = weighted->epochs.front().weights->size();
  if (checked_weights->size() != before)
    refuse_order("there are " + std::to_string(checked_weights->size()) +
                 " new weights, but the order has " + std::to_string(before));
  return checked_weights;
}

Order Order::weighted(std::vector<double> weights, std::uint64_t epoch_size) {
  Weights checked_weights = checked(std::move(weights));
  if (epoch_size == 0) epoch_size = checked_weights->size();
  Order order;
  order.mode_ = Weighted{{{0, std::move(checked_weights)}}, epoch_size};
  return order;
}

Order Order::reweighted(std::uint64_t epoch, std::vector<double> weights) const {
  Weights checked_weights = checked_new(std::move(weights));
  Order order = *this;
  set_from_epoch(std::get<Weighted>(order.mode_).epochs,
                 EpochWeights{epoch, std::move(checked_weights)});
  return order;
}

Order Order::mixed(std::vector<Part> parts, std::uint64_t epoch_size) {
  if (parts.empty()) refuse_order("there are no parts to mix");
  bool any = false;
  std::uint64_t records = 0;
  for (std::size_t number = 0; number < parts.size(); ++number) {
    const Part& part = parts[number];
    const std::string name = "part " + std::to_string(number);
    check_weight(part.weight, "the weight of " + name);
    if (part.records == 0 && part.weight > 0)
      refuse_order(name + " has no records, but a weight of " + weight_text(part.weight));
    if (part.records > UINT64_MAX - records)
      refuse_order("with " + name + " there are more than 2^64 records");
    records += part.records;
    any = any || part.weight > 0;
  }
  if (!any)
    refuse_order("the weights of all " + std::to_string(parts.size()) +
                 " parts are 0; at least one must be positive");
  if (epoch_size == 0) epoch_size = records;
  Order order;
  order.mode_ = Mixed{std::make_shared<const std::vector<Part>>(std::move(parts)), epoch_size};
  return order;
}

Order Order::subset(std::vector<std::uint64_t> indices) const {
  if (indices.empty()) refuse_order("the subset is empty; it takes at least one record");
  if (indices_)
    for (std::size_t place = 0; place < indices.size(); ++place) {
      if (indices[place] >= indices_->size())
        refuse_order("index " + std::to_string(place) + " of the subset is " +
                     std::to_string(indices[place]) + ", but the outer subset has " +
                     std::to_string(indices_->size()) + " records");
      indices[place] = (*indices_)[indices[place]];
    }
  Order order = *this;
  order.indices_ = std::make_shared<const std::vector<std::uint64_t>>(std::move(indices));
  return order;
}

Order Order::filtered(std::uint64_t records, const std::function<bool(std::uint64_t)>& keep) const {
  std::vector<std::uint64_t> indices;
  for (std::uint64_t index = 0; index < records; ++index)
    if (keep(index)) indices.push_back(index);
  if (indices.empty())
    refuse_order("the filter keeps none of " + std::to_string(records) + " records");
  return subset(std::move(indices));
}

Order Order::repeated(std::uint64_t times) const {
  if (times == 0) refuse_order("repeated 0 times; each record comes at least once");
  if (times > UINT64_MAX / times_)
    refuse_order("repeated " + std::to_string(times) + " times, which is too often to count");
  Order order = *this;
  order.times_ *= times;
  return order;
}

}  // namespace millrace
