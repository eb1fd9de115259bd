// SPDX-License-Identifier: Apache-2.0
//
// A CUDA runtime without a GPU: the calls that gpu/ makes, with the asynchrony of the real ones.
// Streams, the default ones among them, are queues that threads of their own serve, copies happen
// late, device memory is poisoned when it is taken and when it is given back, what a captured
// stream is given runs when its graph is launched. It counts calls and can make any of them fail or
// take long. Programs link it in place of the CUDA runtime; it never runs beside it.
//
// CUDA does not say whether cudaFree and cudaHostUnregister wait for what streams were given. Here
// they do, so that their callers' patience is tested. With STAND_IN_CUDA_FREE=at_once in the
// environment they do not, and the memory is poisoned at once: work that still uses it shows.
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

/// Begins afresh with so many devices: counts are 0, nothing fails. Waits for all streams' work
/// first. Throws `std::logic_error` where handles or memory were not given back within 2 s, and as
/// `check_freed_memory`.
void reset(int devices = 1);

/// Throws `std::logic_error` where work used device or page-locked memory that had been given back
/// since the last call. Streams are not busy.
void check_freed_memory();
/// Whether memory goes at once, whatever streams were given. Throws `std::logic_error` where the
/// environment has another word for it.
bool frees_at_once();

/// The `nth` call (from 1, counted from here) of `function`, "cudaMemcpyAsync" for example, fails
/// with `error` and does nothing; with `for_good` all after it, too.
void fail(const std::string& function, std::uint64_t nth, cudaError_t error, bool for_good = false);
/// All devices fail for good, as after an illegal address: every call that needs one returns
/// `error`, cudaGetLastError does not take it back, nothing is copied any more, and nothing can be
/// given back. `reset` forgets all that there was then.
void break_devices(cudaError_t error);
/// The `nth` call of `function` takes `duration` before it does what it does.
void stall(const std::string& function, std::uint64_t nth, std::chrono::nanoseconds duration);
/// Every copy, also those on the device, and every conversion begins so long after its stream has
/// reached it; 100 us at first.
void delay_copies(std::chrono::nanoseconds delay);

/// The device's clock goes so many times as fast as the host's; 1 at first.
void skew_clock(double factor);

/// Each device has so much memory; 64 GiB at first.
void limit_memory(std::size_t bytes);
/// The driver knows CUDA up to `version`, which is said as in CUDART_VERSION; 0 = there is none. At
/// first it knows what this was compiled for.
void install_driver(int version);

/// Calls since `reset`.
std::uint64_t calls(const std::string& function);
/// Names of all functions that were called since `reset`.
std::vector<std::string> called();
/// Devices that would have a context since `reset`: those that a thread chose, or had chosen when
/// it made a call that needs one.
std::set<int> devices_used();
/// Calls since `reset` that take memory, streams or events.
std::uint64_t allocating_calls();
/// Calls since `reset` that wait for the device, among them copies from host memory that is not
/// page-locked.
std::uint64_t synchronising_calls();
/// Priorities of the streams that there are; lower numbers go first.
std::vector<int> stream_priorities();
/// Streams, events, graphs, and pieces of memory, page-locked or on a device, that are not given
/// back.
std::size_t live();

/// The stream runs `function` when it has come so far: a kernel. One that is captured keeps it for
/// the graph. Throws `std::logic_error` where the stream does not take it.
void launch(cudaStream_t stream, std::function<void()> function);
/// Waits until all streams have done what they were given so far. Not counted.
void drain();

}  // namespace millrace::testing::stand_in
