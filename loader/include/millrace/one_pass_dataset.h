// SPDX-License-Identifier: Apache-2.0
//
// A dataset over a stream of records, which are read once per epoch, in the stream's order.
//
// Threads and lifetimes: the dataset shares ownership of its stream. One pipeline at a time reads
// the stream, on a thread of that pipeline.
#pragma once

#include <millrace/dataset.h>
#include <millrace/detail/export.h>
#include <millrace/record_stream.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace MILLRACE_API millrace {

/// Size of the shuffle windows, and the memory for records.
struct OnePassOptions {
  /// Number of consecutive records that are shuffled together, at least 1.
  std::uint64_t window_records = 2048;
  /// Memory in bytes for the records of all windows, at least 1. The record that is being read
  /// needs further memory. A window also ends when its records take a quarter of this memory; the
  /// report then has a warning. If a batch and its windows need more than this memory, the run ends
  /// with an `Error`.
  std::size_t memory_bytes = std::size_t{1} << 30;
};

/// Makes a dataset of a stream, for one `Pipeline` at a time. `size()` throws, because the number
/// of records is known only at the end. Functions that need the size, such as `concat_datasets`,
/// throw too. Throws `Error` (`invalid_argument`) for null or an option that is 0.
///
/// Order: a pipeline thread reads records into windows of `window_records`. `Order::shuffled`
/// shuffles each window by (seed, epoch, first record of the window); `Order::sequential` keeps the
/// stream's order. Other orders are refused. Batches are reproducible, as for any dataset: they
/// depend on the stream, the seed and the options, not on timing or the number of workers. Compared
/// with a true shuffle, this one has three limits:
/// - A record moves by less than W = `window_records` places, on average by W / 3. In a true
///   shuffle of N records it moves by N / 3.
/// - Windows are the same in each epoch and come in the stream's order. Two records of different
///   windows never change their order. Only a batch at the border of two windows has records of
///   both.
/// - A sorted stream therefore stays sorted, apart from moves within a window. Shuffle the stream
///   when it is written.
///
/// Epochs: an epoch is one pass. A stream that cannot restart has a single epoch: with `epochs` = 0
/// the run ends after it, and `epochs` above 1 is an error. The last batch follows
/// `PipelineOptions::last_batch`; with `LastBatch::pad` it repeats its own samples.
/// `Batch::last_in_epoch` is exact. Therefore a batch is planned only when it is known whether it
/// is the epoch's last one. This is known when the stream has ended, or when a record after the
/// batch has been read. With `LastBatch::drop`, a whole batch after it must have been read. The
/// windows of the batch's records must be complete, too.
///
/// Positions of epoch e begin at e * 2^40, so a pass has at most 2^40 records. To resume, pass a
/// stream that begins at its first record. `RecordStream::skip` then skips to the window of the
/// next batch (`State::window`), and the records of that window are read again.
///
/// Ranks: each rank reads the whole stream from a source of its own (a file, a request) and takes
/// its part of each global batch. All ranks have the same number of batches.
///
/// `BadRecords::replace` draws the replacement from the window of the bad record. Record hints and
/// `cache_bytes` are not used.
std::shared_ptr<const Dataset> one_pass_dataset(std::shared_ptr<RecordStream> stream,
                                                const OnePassOptions& options = {});

/// Whether a dataset was made by `one_pass_dataset`.
bool is_one_pass(const Dataset& dataset);
/// Whether a run over a dataset can begin again: false for a one-pass dataset of a stream that
/// cannot restart.
bool can_restart(const Dataset& dataset);

}  // namespace millrace
