// SPDX-License-Identifier: Apache-2.0
#include <millrace/c_order.h>
#include <millrace/order.h>

#include <vector>

#include "c/calls.h"
#include "c/handles.h"

namespace millrace::c {
namespace {

/// Copies a list of the caller. Throws `Error` (`invalid_argument`) for a null pointer to elements.
template <typename Element>
std::vector<Element> list_of(const Element* elements, std::size_t count, const char* name) {
  if (count == 0) return {};
  required(elements, name);
  return {elements, elements + count};
}

/// Writes the handle of the order that `make` returns.
template <typename Make>
millrace_status make_order(millrace_order** order, millrace_error* error, Make&& make) {
  return guarded(error, [&] {
    millrace_order*& handle = result_at(order, "order");
    handle = put<millrace_order>(std::make_shared<const Order>(make()));
  });
}

Order::Buckets buckets_of(std::uint64_t window_records, std::uint64_t group_records) {
  return {.window_records = window_records, .group_records = group_records};
}

}  // namespace
}  // namespace millrace::c

using namespace millrace::c;
using millrace::Order;

millrace_status millrace_order_shuffled(millrace_order** order, millrace_error* error) {
  return make_order(order, error, [] { return Order::shuffled(); });
}

millrace_status millrace_order_sequential(millrace_order** order, millrace_error* error) {
  return make_order(order, error, [] { return Order::sequential(); });
}

millrace_status millrace_order_blocks(uint64_t block_records, uint64_t window_blocks,
                                      millrace_order** order, millrace_error* error) {
  return make_order(order, error, [&] {
    return Order::blocks({.block_records = block_records, .window_blocks = window_blocks});
  });
}

millrace_status millrace_order_bucketed(const uint32_t* lengths, size_t n_lengths,
                                        uint64_t window_records, uint64_t group_records,
                                        millrace_order** order, millrace_error* error) {
  return make_order(order, error, [&] {
    return Order::bucketed(list_of(lengths, n_lengths, "lengths"),
                           buckets_of(window_records, group_records));
  });
}

millrace_status millrace_order_bucketed_by(const char* field, uint64_t window_records,
                                           uint64_t group_records, millrace_order** order,
                                           millrace_error* error) {
  return make_order(order, error, [&] {
    return Order::bucketed_by(required(field, "field"), buckets_of(window_records, group_records));
  });
}

millrace_status millrace_order_weighted(const double* weights, size_t n_weights,
                                        uint64_t epoch_size, millrace_order** order,
                                        millrace_error* error) {
  return make_order(order, error, [&] {
    return Order::weighted(list_of(weights, n_weights, "weights"), epoch_size);
  });
}

millrace_status millrace_order_reweighted(const millrace_order* base, uint64_t epoch,
                                          const double* weights, size_t n_weights,
                                          millrace_order** order, millrace_error* error) {
  return make_order(order, error, [&] {
    return get(base)->reweighted(epoch, list_of(weights, n_weights, "weights"));
  });
}

millrace_status millrace_order_mixed(const millrace_source* parts, size_t n_parts,
                                     uint64_t epoch_size, millrace_order** order,
                                     millrace_error* error) {
  return make_order(order, error, [&] {
    std::vector<Order::Part> part_list;
    for (const millrace_source& part : list_of(parts, n_parts, "parts"))
      part_list.push_back({.records = part.records, .weight = part.weight});
    return Order::mixed(std::move(part_list), epoch_size);
  });
}

millrace_status millrace_order_subset(const millrace_order* base, const uint64_t* indices,
                                      size_t n_indices, millrace_order** order,
                                      millrace_error* error) {
  return make_order(order, error,
                    [&] { return get(base)->subset(list_of(indices, n_indices, "indices")); });
}

millrace_status millrace_order_filtered(const millrace_order* base, uint64_t records,
                                        int32_t (*keep)(void* user, uint64_t index), void* user,
                                        millrace_order** order, millrace_error* error) {
  return make_order(order, error, [&] {
    required(keep, "keep");
    return get(base)->filtered(records,
                               [&](std::uint64_t index) { return keep(user, index) != 0; });
  });
}

millrace_status millrace_order_repeated(const millrace_order* base, uint64_t times,
                                        millrace_order** order, millrace_error* error) {
  return make_order(order, error, [&] { return get(base)->repeated(times); });
}

void millrace_order_free(millrace_order* order) { drop(order); }
