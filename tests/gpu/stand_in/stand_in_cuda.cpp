// SPDX-License-Identifier: Apache-2.0
#include "stand_in_cuda.h"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

using Clock = std::chrono::steady_clock;

namespace {

constexpr std::size_t device_alignment = 256;
constexpr int taken_poison = 0xDB;
constexpr int freed_poison = 0xDD;

/// A point in a stream's work.
class Point {
 public:
  void pass() {
    std::lock_guard lock(mutex_);
    passed_ = Clock::now();
    changed_.notify_all();
  }
  void wait() const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return passed_.has_value(); });
  }
  std::optional<Clock::time_point> passed() const {
    std::lock_guard lock(mutex_);
    return passed_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::optional<Clock::time_point> passed_;
};

/// A queue and the thread that serves it. The thread goes on to the queue's end when the stream is destroyed, as a GPU does.
class Queue {
 public:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !work_.empty() || closed_; });
      if (work_.empty()) return;
      busy_ = true;
      std::function<void()> next = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      next();
      next = nullptr;
      lock.lock();
      busy_ = false;
      changed_.notify_all();
    }
  }
  void drain() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return work_.empty() && !busy_; });
  }
  void push(std::function<void()> work) {
    std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    changed_.notify_all();
  }
  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool busy_ = false;
  bool closed_ = false;
};

}  // namespace

// What the handles point to.
struct CUstream_st {
  int device;
  std::shared_ptr<Queue> queue;
};
struct CUevent_st {
  int device;
  bool timed;
  std::shared_ptr<Point> point;
};

namespace {

/// All that the stand-in knows. Its members are looked at under the mutex.
struct Machine {
  std::mutex mutex;
  int devices = 1;
  std::chrono::nanoseconds copy_delay{100'000};
  struct Plan {
    std::uint64_t nth = 0;
    cudaError_t error = cudaSuccess;
    bool for_good = false;
    std::chrono::nanoseconds stall{0};
  };
  std::map<std::string, std::vector<Plan>> plans;
  std::map<std::string, std::uint64_t> calls;
  std::uint64_t unlocked_copies = 0;
  std::set<cudaStream_t> streams;
  std::set<cudaEvent_t> events;
  /// Also those of streams that were destroyed: what they were given is done all the same.
  std::vector<std::shared_ptr<Queue>> queues;
  std::vector<std::thread> threads;
  std::map<void*, std::size_t> device_memory;
  std::map<void*, std::size_t> locked_memory;
};

Machine& machine() {
  static Machine the_machine;
  return the_machine;
}

thread_local int current_device = 0;

/// Counts a call; what a test planned for it is its result.
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

void drain_queues() {
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

/// Whether all of [data, data + bytes) lies in one piece.
bool within(const std::map<void*, std::size_t>& pieces, const void* data, std::size_t bytes) {
  auto after = pieces.upper_bound(const_cast<void*>(data));
  if (after == pieces.begin()) return false;
  const auto& [begin, size] = *std::prev(after);
  const auto offset = static_cast<std::size_t>(static_cast<const char*>(data) - static_cast<const char*>(begin));
  return offset + bytes <= size;
}

}  // namespace

namespace millrace::testing::stand_in {

void drain() { drain_queues(); }

void reset(int devices) {
  drain_queues();
  if (const std::size_t left = live(); left > 0)
    throw std::logic_error(std::to_string(left) + " streams, events or pieces of memory were not given back");
  std::vector<std::thread> threads;
  {
    std::lock_guard lock(machine().mutex);
    threads.swap(machine().threads);
    machine().queues.clear();
    machine().devices = devices;
    machine().copy_delay = std::chrono::microseconds(100);
    machine().plans.clear();
    machine().calls.clear();
    machine().unlocked_copies = 0;
  }
  for (std::thread& thread : threads) thread.join();
  current_device = 0;
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

// ---- the CUDA runtime's functions

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  if (const cudaError_t error = enter("cudaGetDeviceCount")) return error;
  std::lock_guard lock(machine().mutex);
  *count = machine().devices;
  return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaGetDevice(int* device) {
  if (const cudaError_t error = enter("cudaGetDevice")) return error;
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t error = enter("cudaSetDevice")) return error;
  std::lock_guard lock(machine().mutex);
  if (device < 0 || device >= machine().devices) return cudaErrorInvalidDevice;
  current_device = device;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  if (const cudaError_t error = enter("cudaDeviceGetPCIBusId")) return error;
  std::snprintf(id, static_cast<std::size_t>(length), "FFFF:%02X:00.0", static_cast<unsigned>(device) & 0xFFU);
  return cudaSuccess;
}

const char* cudaGetErrorName(cudaError_t error) { return error == cudaSuccess ? "cudaSuccess" : "cudaErrorOfTheStandIn"; }
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess         ? "no error"
         : error == cudaErrorNoDevice ? "no CUDA-capable device is detected"
                                      : "a planned error";
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  if (const cudaError_t error = enter("cudaStreamCreateWithFlags")) return error;
  auto queue = std::make_shared<Queue>();
  *stream = new CUstream_st{current_device, queue};
  std::lock_guard lock(machine().mutex);
  machine().streams.insert(*stream);
  machine().queues.push_back(queue);
  machine().threads.emplace_back([queue] { queue->serve(); });
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (const cudaError_t error = enter("cudaStreamDestroy")) return error;
  std::lock_guard lock(machine().mutex);
  if (machine().streams.erase(stream) == 0) return cudaErrorInvalidResourceHandle;
  stream->queue->close();
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t error = enter("cudaStreamSynchronize")) return error;
  const auto queue = queue_of(stream);
  if (queue == nullptr) return cudaErrorInvalidResourceHandle;
  const auto end = std::make_shared<Point>();
  queue->push([end] { end->pass(); });
  end->wait();
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  if (const cudaError_t error = enter("cudaStreamWaitEvent")) return error;
  std::lock_guard lock(machine().mutex);
  if (!machine().streams.contains(stream) || !machine().events.contains(event)) return cudaErrorInvalidResourceHandle;
  // The point of the latest record before this call, as CUDA has it.
  if (const auto point = event->point) stream->queue->push([point] { point->wait(); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (const cudaError_t error = enter("cudaEventCreateWithFlags")) return error;
  *event = new CUevent_st{current_device, (flags & cudaEventDisableTiming) == 0, nullptr};
  std::lock_guard lock(machine().mutex);
  machine().events.insert(*event);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (const cudaError_t error = enter("cudaEventDestroy")) return error;
  std::lock_guard lock(machine().mutex);
  if (machine().events.erase(event) == 0) return cudaErrorInvalidResourceHandle;
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t error = enter("cudaEventRecord")) return error;
  std::lock_guard lock(machine().mutex);
  if (!machine().streams.contains(stream) || !machine().events.contains(event)) return cudaErrorInvalidResourceHandle;
  if (stream->device != event->device) return cudaErrorInvalidResourceHandle;
  const auto point = std::make_shared<Point>();
  event->point = point;
  stream->queue->push([point] { point->pass(); });
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t error = enter("cudaEventQuery")) return error;
  std::lock_guard lock(machine().mutex);
  if (!machine().events.contains(event)) return cudaErrorInvalidResourceHandle;
  return event->point == nullptr || event->point->passed() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (const cudaError_t error = enter("cudaEventElapsedTime")) return error;
  std::lock_guard lock(machine().mutex);
  if (!machine().events.contains(start) || !machine().events.contains(end)) return cudaErrorInvalidResourceHandle;
  if (!start->timed || !end->timed || start->point == nullptr || end->point == nullptr) return cudaErrorInvalidResourceHandle;
  const auto begun = start->point->passed();
  const auto ended = end->point->passed();
  if (!begun || !ended) return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(*ended - *begun).count();
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  if (const cudaError_t error = enter("cudaMalloc")) return error;
  *data = ::operator new(bytes, std::align_val_t(device_alignment));
  std::memset(*data, taken_poison, bytes);
  std::lock_guard lock(machine().mutex);
  machine().device_memory[*data] = bytes;
  return cudaSuccess;
}

cudaError_t cudaFree(void* data) {
  if (const cudaError_t error = enter("cudaFree")) return error;
  drain_queues();  // the real one waits for the device, too
  std::size_t bytes = 0;
  {
    std::lock_guard lock(machine().mutex);
    const auto found = machine().device_memory.find(data);
    if (found == machine().device_memory.end()) return cudaErrorInvalidValue;
    bytes = found->second;
    machine().device_memory.erase(found);
  }
  std::memset(data, freed_poison, bytes);
  ::operator delete(data, std::align_val_t(device_alignment));
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* data, std::size_t bytes, unsigned /*flags*/) {
  if (const cudaError_t error = enter("cudaHostRegister")) return error;
  std::lock_guard lock(machine().mutex);
  const bool fresh = machine().locked_memory.emplace(data, bytes).second;
  return fresh ? cudaSuccess : cudaErrorHostMemoryAlreadyRegistered;
}

cudaError_t cudaHostUnregister(void* data) {
  if (const cudaError_t error = enter("cudaHostUnregister")) return error;
  drain_queues();
  std::lock_guard lock(machine().mutex);
  return machine().locked_memory.erase(data) > 0 ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (const cudaError_t error = enter("cudaMemcpyAsync")) return error;
  std::lock_guard lock(machine().mutex);
  if (!machine().streams.contains(stream)) return cudaErrorInvalidResourceHandle;
  const bool up = kind == cudaMemcpyHostToDevice;
  if (!within(machine().device_memory, up ? to : from, bytes)) return cudaErrorInvalidValue;
  if (!within(machine().locked_memory, up ? from : to, bytes)) ++machine().unlocked_copies;
  stream->queue->push([to, from, bytes, delay = machine().copy_delay] {
    std::this_thread::sleep_for(delay);
    std::memcpy(to, from, bytes);
  });
  return cudaSuccess;
}

}  // extern "C"
