// SPDX-License-Identifier: Apache-2.0
// How devices tell of calls that allocate or wait, for millrace's own devices.
//
// Threads: any thread may call it, inside a pipeline's work or not.
#pragma once

#include <millrace/detail/export.h>

namespace MILLRACE_API millrace {

/// Tells that the calling thread is about to allocate memory, streams or events of a device, to
/// give them back, or to wait for the device: `call` names what it calls ("cudaMalloc") and lives
/// as long as the program. Devices call it. Where the thread is on the batch path of a pipeline
/// with `DebugOptions::forbid_blocking_calls`, the run ends with an error that names the call;
/// else it costs a load. Never throws, so destructors may call it, too.
void note_blocking_call(const char* call) noexcept;

}  // namespace millrace
