// SPDX-License-Identifier: Apache-2.0
// Reports of device calls that allocate or wait, for millrace's own devices.
//
// Threads: may be called on any thread, inside a pipeline's work or not.
#pragma once

#include <millrace/detail/export.h>

namespace MILLRACE_API millrace {

/// Reports that the calling thread is about to allocate or free memory, streams or events of a
/// device, or to wait for the device. Devices call it. `call` is the name of the call
/// ("cudaMalloc") and must live as long as the program. If the thread is working on a batch of a
/// pipeline with `DebugOptions::forbid_blocking_calls`, the run ends with an error that names the
/// call. Otherwise the call costs at most two memory reads. Never throws, so destructors may call
/// it, too.
void note_blocking_call(const char* call) noexcept;

}  // namespace millrace
