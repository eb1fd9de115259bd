// SPDX-License-Identifier: Apache-2.0
// Fields of a batch as DLPack tensors (https://dmlc.github.io/dlpack), without a copy of the data,
// for PyTorch, NumPy, JAX, CuPy and whatever else takes them. The structs are DLPack's own; its
// header is not needed to pass them on.
//
// Streams: on a GPU a tensor holds its data once the stream that the batch was taken on has passed
// `Pipeline::next` (or, of a micro-batch, the range's `*iterator`). Whoever uses it on another
// stream makes that one wait first, and tells the batch by `Batch::record_stream`. In host memory
// the data of a batch taken without a stream is there at once.
//
// Threads: any thread may make a tensor of a batch, and any one may delete it.
// Lifetimes: a tensor holds a share of its batch until its deleter is called, and so its slot; it
// may outlive the `Batch`, its pipeline and the runtime, but of the batch's streams only those that
// it keeps (`Batch::record_stream`).
#pragma once

#include <millrace/batch.h>
#include <millrace/detail/export.h>

struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace MILLRACE_API millrace {

/// The tensor, row-major, with its strides, on kDLCPU or kDLCUDA; a bool is DLPack 1.0's kDLBool.
/// The caller owns it: whoever takes it calls its `deleter` once. Throws `std::bad_alloc` without
/// memory.
[[nodiscard]] DLManagedTensor* to_dlpack(const BatchTensor& tensor);

struct DlpackOptions {
  /// Asks the consumer not to write to it. Trainers may write to a batch: its slot is filled anew
  /// each time.
  bool read_only = false;
};

/// The same in the form of DLPack 1.0. <millrace/detail/dlpack_versioned.h> declares the struct for
/// those whose dlpack.h is older.
[[nodiscard]] DLManagedTensorVersioned* to_dlpack_versioned(const BatchTensor& tensor,
                                                            const DlpackOptions& options = {});

}  // namespace millrace
