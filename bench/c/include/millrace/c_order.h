/* SPDX-License-Identifier: Apache-2.0
 *
 * Joined datasets and orders for C. An order is the sequence in which a run takes a dataset's
 * records. It is an immutable value, for `order` of millrace_pipeline_setup. <millrace/order.h>
 * describes each order and its defaults in C++; here every argument must be given. Lists are
 * copied. The rules of <millrace/millrace.h> hold here, too.
 */
#ifndef MILLRACE_C_ORDER_H
#define MILLRACE_C_ORDER_H

#include <millrace/millrace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Joins datasets into one, as concat_datasets() of <millrace/concat_dataset.h> does. Record numbers
 * continue from part to part. The result keeps its parts alive. */
MILLRACE_C_API millrace_status millrace_dataset_concat(const millrace_dataset* const* parts,
                                                       size_t n_parts, millrace_dataset** dataset,
                                                       millrace_error* error);

MILLRACE_C_API millrace_status millrace_order_shuffled(millrace_order** order,
                                                       millrace_error* error);
MILLRACE_C_API millrace_status millrace_order_sequential(millrace_order** order,
                                                         millrace_error* error);
MILLRACE_C_API millrace_status millrace_order_blocks(uint64_t block_records, uint64_t window_blocks,
                                                     millrace_order** order, millrace_error* error);
/* `lengths` has one value for each record. */
MILLRACE_C_API millrace_status millrace_order_bucketed(const uint32_t* lengths, size_t n_lengths,
                                                       uint64_t window_records,
                                                       uint64_t group_records,
                                                       millrace_order** order,
                                                       millrace_error* error);
/* Uses the size of a field, in bytes, as a record's length. Each new pipeline reads all records
 * once to get these sizes. */
MILLRACE_C_API millrace_status millrace_order_bucketed_by(const char* field,
                                                          uint64_t window_records,
                                                          uint64_t group_records,
                                                          millrace_order** order,
                                                          millrace_error* error);
/* `weights` has one value for each record. An epoch is `epoch_size` draws; 0 = `n_weights`. */
MILLRACE_C_API millrace_status millrace_order_weighted(const double* weights, size_t n_weights,
                                                       uint64_t epoch_size, millrace_order** order,
                                                       millrace_error* error);
/* Makes an order from `base`, with other weights from `epoch` on. `n_weights` must be the same as
 * for `base`. */
MILLRACE_C_API millrace_status millrace_order_reweighted(const millrace_order* base, uint64_t epoch,
                                                         const double* weights, size_t n_weights,
                                                         millrace_order** order,
                                                         millrace_error* error);
/* Changes the weights of a run whose order is weighted, as Pipeline::set_weights of
 * <millrace/pipeline.h> does. Sets `epoch` to the first epoch with these weights. That epoch begins
 * after the batches that may be planned already: the next `prefetch` ones, and `device_slots` more
 * if the run copies batches. With the option "epoch_break", a call after the last batch of an epoch
 * sets the weights of the next one. All ranks must call it with the same weights after the same
 * number of batches. May be called from any thread. To resume, give the new pipeline the weights of
 * the state's epoch. If the state names weights of later epochs, add these by
 * millrace_order_reweighted. */
MILLRACE_C_API millrace_status millrace_pipeline_set_weights(millrace_pipeline* pipeline,
                                                             const double* weights,
                                                             size_t n_weights, uint64_t* epoch,
                                                             millrace_error* error);

/* A part of a joined dataset: Order::Part. */
typedef struct millrace_source {
  uint64_t records;
  double weight;
} millrace_source;

/* An epoch has `epoch_size` positions; 0 = the number of records of all parts together. */
MILLRACE_C_API millrace_status millrace_order_mixed(const millrace_source* parts, size_t n_parts,
                                                    uint64_t epoch_size, millrace_order** order,
                                                    millrace_error* error);
/* Makes an order of a list of records: `base` orders the elements of `indices`. `base` stays
 * unchanged, as in the next two functions. */
MILLRACE_C_API millrace_status millrace_order_subset(const millrace_order* base,
                                                     const uint64_t* indices, size_t n_indices,
                                                     millrace_order** order, millrace_error* error);
/* Makes an order of a part of the records: the indices below `records` for which `keep` does not
 * return 0. */
MILLRACE_C_API millrace_status millrace_order_filtered(const millrace_order* base, uint64_t records,
                                                       int32_t (*keep)(void* user, uint64_t index),
                                                       void* user, millrace_order** order,
                                                       millrace_error* error);
/* Makes an order in which each record of `base` comes `times` times in a row. */
MILLRACE_C_API millrace_status millrace_order_repeated(const millrace_order* base, uint64_t times,
                                                       millrace_order** order,
                                                       millrace_error* error);
MILLRACE_C_API void millrace_order_free(millrace_order* order);

#ifdef __cplusplus
}
#endif

#endif
