// SPDX-License-Identifier: Apache-2.0
#include "stand_in_cuda.h"

#include <stdexcept>

#include "machine.h"

namespace millrace::testing::stand_in {

Machine& machine() {
  static Machine the_machine;
  return the_machine;
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
    for (const Machine::Plan& plan : machine().plans[function]) {
      if (call != plan.nth && !(plan.for_good && call > plan.nth)) continue;
      stall += plan.stall;
      if (plan.error != cudaSuccess) error = plan.error;
    }
  }
  std::this_thread::sleep_for(stall);
  return error;
}

void drain() {
  std::vector<std::shared_ptr<Queue>> queues;
  {
    std::lock_guard lock(machine().mutex);
    queues = machine().queues;
  }
  for (const auto& queue : queues) queue->drain();
}

std::shared_ptr<Queue> queue_of(cudaStream_t stream) {
  std::lock_guard lock(machine().mutex);
  return machine().streams.contains(stream) ? stream->queue : nullptr;
}

void reset(int devices) {
  drain();
  if (const std::size_t left = live(); left > 0)
    throw std::logic_error(std::to_string(left) + " streams, events or pieces of memory were not given back");
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
    machine().unlocked_copies = 0;
  }
  for (std::thread& thread : threads) thread.join();
  current_device() = 0;
}

void fail(const std::string& function, std::uint64_t nth, cudaError_t error, bool for_good) {
  std::lock_guard lock(machine().mutex);
  machine().plans[function].push_back({.nth = machine().calls[function] + nth, .error = error, .for_good = for_good});
}

void stall(const std::string& function, std::uint64_t nth, std::chrono::nanoseconds duration) {
  std::lock_guard lock(machine().mutex);
  machine().plans[function].push_back({.nth = machine().calls[function] + nth, .stall = duration});
}

void delay_copies(std::chrono::nanoseconds delay) {
  std::lock_guard lock(machine().mutex);
  machine().copy_delay = delay;
}

void skew_clock(double factor) {
  std::lock_guard lock(machine().mutex);
  machine().clock_factor = factor;
}

std::uint64_t calls(const std::string& function) {
  std::lock_guard lock(machine().mutex);
  return machine().calls[function];
}

std::vector<std::string> called() {
  std::lock_guard lock(machine().mutex);
  std::vector<std::string> names;
  for (const auto& [name, count] : machine().calls)
    if (count > 0) names.push_back(name);
  return names;
}

std::uint64_t allocating_calls() {
  return calls("cudaMalloc") + calls("cudaHostRegister") + calls("cudaStreamCreateWithFlags") + calls("cudaEventCreateWithFlags");
}

std::uint64_t synchronising_calls() {
  const std::uint64_t counted = calls("cudaStreamSynchronize") + calls("cudaFree") + calls("cudaHostUnregister");
  std::lock_guard lock(machine().mutex);
  return counted + machine().unlocked_copies;
}

std::size_t live() {
  std::lock_guard lock(machine().mutex);
  return machine().streams.size() + machine().events.size() + machine().device_memory.size() + machine().locked_memory.size();
}

void launch(cudaStream_t stream, std::function<void()> function) {
  const auto queue = queue_of(stream);
  if (queue == nullptr) throw std::logic_error("there is no such stream");
  queue->push(std::move(function));
}

}  // namespace millrace::testing::stand_in
