// SPDX-License-Identifier: Apache-2.0
// Converts fields of a batch to DLPack tensors (https://dmlc.github.io/dlpack) without copying the
// data, for PyTorch, NumPy, JAX, CuPy and other libraries that accept them. The structs are
// DLPack's own. DLPack's header is not needed to pass them on.
//
// Streams: on a GPU a tensor holds its data after the batch's stream has passed `Pipeline::next`
// (for a micro-batch: the range's `*iterator`). To use the tensor on another stream, first make
// that stream wait for the batch's stream, and pass it to `Batch::record_stream`. In host memory
// the data of a batch taken without a stream is ready at once.
//
// Threads: a tensor may be made and deleted on any thread.
// Lifetimes: a tensor holds a copy of its batch, and so its slot, until its deleter is called. It
// may outlive the `Batch`, its pipeline and the runtime. Streams of the batch must outlive it,
// unless the batch keeps them (`Batch::record_stream`).
#pragma once

#include <millrace/batch.h>
#include <millrace/detail/export.h>

struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace MILLRACE_API millrace {

/// Makes a row-major tensor with its strides, on kDLCPU or kDLCUDA. A bool has DLPack 1.0's type
/// kDLBool. The caller owns the tensor, and its final owner must call its `deleter` once. Throws
/// `std::bad_alloc` if there is not enough memory.
[[nodiscard]] DLManagedTensor* to_dlpack(const BatchTensor& tensor);

struct DlpackOptions {
  /// Asks the consumer not to write to the tensor. Writing is allowed by default, because a slot is
  /// filled again before its next batch.
  bool read_only = false;
};

/// Makes the same tensor in the form of DLPack 1.0. If your dlpack.h is older,
/// <millrace/detail/dlpack_versioned.h> declares the struct.
[[nodiscard]] DLManagedTensorVersioned* to_dlpack_versioned(const BatchTensor& tensor,
                                                            const DlpackOptions& options = {});

}  // namespace millrace
