// SPDX-License-Identifier: Apache-2.0
#include "stand_in/stand_in_cuda.h"

#include <stdexcept>
#include <string_view>

#include "stand_in/machine.h"

namespace millrace::testing::stand_in {

Machine& machine() {
  static Machine the_machine;
  return the_machine;
}

Machine::~Machine() {
  for (const auto& queue : queues) queue->close();
  for (std::thread& thread : threads) thread.join();
}

int& current_device() {
  thread_local int device = 0;
  return device;
}

cudaError_t enter(const char* function) {
  std::chrono::nanoseconds stall{0};
  cudaError_t error = cudaSuccess;
  {
    std::lock_guard lock(machine().mutex);
    const std::uint64_t call = ++machine().calls[function];
    // As on a GPU: to ask for devices and their attributes needs no context, most else makes one,
    // to choose a device as well.
    if (std::string_view(function).substr(0, 7) != "cudaGet" &&
        std::string_view(function).substr(0, 13) != "cudaDeviceGet" &&
        std::string_view(function) != "cudaSetDevice")
      machine().devices_used.insert(current_device());
    for (const Machine::Plan& plan : machine().plans[function]) {
      if (call != plan.nth && !(plan.for_good && call > plan.nth)) continue;
      stall += plan.stall;
      if (plan.error != cudaSuccess) error = plan.error;
    }
  }
  std::this_thread::sleep_for(stall);
  return error;
}

cudaStreamCaptureMode& capture_mode() {
  thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  return mode;
}

cudaError_t enter_outside_captures(const char* function) {
  if (const cudaError_t error = enter(function)) return error;
  if (capture_mode() == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  std::lock_guard lock(machine().mutex);
  cudaError_t error = cudaSuccess;
  for (cudaStream_t stream : machine().streams) {
    const auto& capture = stream->capture;
    if (capture == nullptr || capture->mode == cudaStreamCaptureModeRelaxed) continue;
    const bool of_this_thread = capture->begun_by == std::this_thread::get_id();
    const bool of_any = capture->mode == cudaStreamCaptureModeGlobal &&
                        capture_mode() == cudaStreamCaptureModeGlobal;
    if (!of_this_thread && !of_any) continue;
    capture->invalid = true;
    error = cudaErrorStreamCaptureUnsupported;
  }
  return error;
}

cudaError_t give_locked(cudaStream_t stream, std::function<void()> work) {
  if (!machine().streams.contains(stream)) return cudaErrorInvalidResourceHandle;
  if (stream->capture == nullptr) {
    stream->queue->push(std::move(work));
    return cudaSuccess;
  }
  if (stream->capture->invalid) return cudaErrorStreamCaptureInvalidated;
  stream->capture->work.push_back(std::move(work));
  return cudaSuccess;
}

cudaError_t give(cudaStream_t stream, std::function<void()> work) {
  std::lock_guard lock(machine().mutex);
  return give_locked(stream, std::move(work));
}

void drain() {
  std::vector<std::shared_ptr<Queue>> queues;
  {
    std::lock_guard lock(machine().mutex);
    queues = machine().queues;
  }
  for (const auto& queue : queues) queue->drain();
}

void reset(int devices) {
  drain();
  if (const std::size_t left = live(); left > 0)
    throw std::logic_error(std::to_string(left) +
                           " streams, events, graphs or pieces of memory were not given back");
  std::vector<std::thread> threads;
  {
    std::lock_guard lock(machine().mutex);
    threads.swap(machine().threads);
    machine().queues.clear();
    machine().devices = devices;
    machine().copy_delay = std::chrono::microseconds(100);
    machine().clock_factor = 1;
    machine().plans.clear();
    machine().calls.clear();
    machine().devices_used.clear();
    machine().unlocked_copies = 0;
  }
  for (std::thread& thread : threads) thread.join();
  current_device() = 0;
  capture_mode() = cudaStreamCaptureModeGlobal;
}

void fail(const std::string& function, std::uint64_t nth, cudaError_t error, bool for_good) {
  std::lock_guard lock(machine().mutex);
  machine().plans[function].push_back(
      {.nth = machine().calls[function] + nth, .error = error, .for_good = for_good});
}

void stall(const std::string& function, std::uint64_t nth, std::chrono::nanoseconds duration) {
  std::lock_guard lock(machine().mutex);
  machine().plans[function].push_back({.nth = machine().calls[function] + nth, .stall = duration});
}

void delay_copies(std::chrono::nanoseconds delay) {
  std::lock_guard lock(machine().mutex);
  machine().copy_delay = delay;
}

std::chrono::nanoseconds copy_delay() {
  std::lock_guard lock(machine().mutex);
  return machine().copy_delay;
}

void skew_clock(double factor) {
  std::lock_guard lock(machine().mutex);
  machine().clock_factor = factor;
}

std::uint64_t calls(const std::string& function) {
  std::lock_guard lock(machine().mutex);
  return machine().calls[function];
}

std::set<int> devices_used() {
  std::lock_guard lock(machine().mutex);
  return machine().devices_used;
}

std::vector<std::string> called() {
  std::lock_guard lock(machine().mutex);
  std::vector<std::string> names;
  for (const auto& [name, count] : machine().calls)
    if (count > 0) names.push_back(name);
  return names;
}

std::uint64_t allocating_calls() {
  return calls("cudaMalloc") + calls("cudaHostRegister") + calls("cudaStreamCreateWithFlags") +
         calls("cudaStreamCreateWithPriority") + calls("cudaEventCreateWithFlags");
}

std::uint64_t synchronising_calls() {
  const std::uint64_t counted =
      calls("cudaStreamSynchronize") + calls("cudaFree") + calls("cudaHostUnregister");
  std::lock_guard lock(machine().mutex);
  return counted + machine().unlocked_copies;
}

std::size_t live() {
  std::lock_guard lock(machine().mutex);
  return machine().streams.size() + machine().events.size() + machine().device_memory.size() +
         machine().locked_memory.size() + machine().graphs.size() +
         machine().graph_executions.size();
}

void launch(cudaStream_t stream, std::function<void()> function) {
  if (give(stream, std::move(function)) != cudaSuccess)
    throw std::logic_error("the stream takes no work");
}

}  // namespace millrace::testing::stand_in
