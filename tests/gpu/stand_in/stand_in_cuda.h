// SPDX-License-Identifier: Apache-2.0
//
// A CUDA runtime without a GPU: the calls that gpu/ makes, with the asynchrony of the real ones.
// Streams, including the default ones, are queues with threads of their own. Copies happen late.
// Device memory is poisoned when it is allocated and when it is freed. Work of a captured stream
// runs when its graph is launched. It counts calls and can make any of them fail or take long.
// Programs link it in place of the CUDA runtime, never together with it.
//
// CUDA does not specify whether cudaFree and cudaHostUnregister wait for the streams' work. Here
// they do, to test their callers' handling of the wait. With STAND_IN_CUDA_FREE=at_once in the
// environment they do not, and the memory is poisoned at once, which reveals work that still uses
// it.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace millrace::testing::stand_in {

/// Starts again with so many devices: counts are 0, and calls do not fail. Waits for all streams'
/// work first. Throws `std::logic_error` if handles or memory were not freed within 2 s, and like
/// `check_freed_memory`.
void reset(int devices = 1);

/// Throws `std::logic_error` if work has used freed device or page-locked memory since the last
/// call. Streams must be idle.
void check_freed_memory();
/// Whether memory is freed at once, whatever work the streams have. Throws `std::logic_error` for
/// an invalid value in the environment.
bool frees_at_once();

/// Makes the `nth` call (from 1, counted from now) of `function`, for example "cudaMemcpyAsync",
/// fail with `error` and do nothing; with `for_good` all later calls, too.
void fail(const std::string& function, std::uint64_t nth, cudaError_t error, bool for_good = false);
/// Makes all devices fail permanently, as after an illegal address. Every call that needs a device
/// returns `error`, and cudaGetLastError does not clear it. Copies are not made, and nothing can be
/// freed. `reset` forgets all objects that existed then.
void break_devices(cudaError_t error);
/// Makes the `nth` call of `function` take `duration` before it does its work.
void stall(const std::string& function, std::uint64_t nth, std::chrono::nanoseconds duration);
/// Delays every copy, also those on the device, and every conversion after its stream has reached
/// it; 100 us by default.
void delay_copies(std::chrono::nanoseconds delay);

/// Speed of the device's clock relative to the host's; 1 by default.
void skew_clock(double factor);

/// Memory of each device; 64 GiB by default.
void limit_memory(std::size_t bytes);
/// Sets the driver's supported version of CUDA, in the form of CUDART_VERSION; 0 = no driver. The
/// default is the version that this was compiled for.
void install_driver(int version);

/// Number of calls since `reset`.
std::uint64_t calls(const std::string& function);
/// Names of all functions that were called since `reset`.
std::vector<std::string> called();
/// Devices that would have a context since `reset`: those that a thread chose, or had chosen when
/// it made a call that needs a context.
std::set<int> devices_used();
/// Number of calls since `reset` that allocate memory, streams or events.
std::uint64_t allocating_calls();
/// Number of calls since `reset` that wait for the device, including copies from host memory that
/// is not page-locked.
std::uint64_t synchronising_calls();
/// Priorities of the existing streams; lower numbers go first.
std::vector<int> stream_priorities();
/// Number of streams, events, graphs, and pieces of memory (page-locked or on a device) that are
/// not freed.
std::size_t live();

/// Enqueues `function` on the stream: a kernel. A captured stream keeps it for the graph. Throws
/// `std::logic_error` if the stream rejects it.
void launch(cudaStream_t stream, std::function<void()> function);
/// Waits for the work so far of all streams. Not counted.
void drain();

}  // namespace millrace::testing::stand_in
