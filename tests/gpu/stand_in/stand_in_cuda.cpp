// SPDX-License-Identifier: Apache-2.0
#include "stand_in/stand_in_cuda.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "stand_in/machine.h"

namespace millrace::testing::stand_in {

static void end_streams() {
  std::unique_lock lock(machine().mutex);
  for (const auto& queue : machine().queues) queue->close();
  std::vector<std::thread> threads = std::move(machine().threads);
  lock.unlock();
  for (std::thread& thread : threads) thread.join();
}

Machine& machine() {
  // Never destroyed: detached threads query their events until the process has ended.
  static Machine& the_machine = *new Machine;
  [[maybe_unused]] static const int at_exit = std::atexit(end_streams);
  return the_machine;
}

std::vector<int>& contexts() {
  thread_local std::vector<int> pushed;
  return pushed;
}

int current_device() { return contexts().empty() ? 0 : contexts().back(); }

cudaError_t& last_error() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}

namespace {

bool of_driver(std::string_view function) {
  return function.starts_with("cu") && !function.starts_with("cuda");
}

/// As on a GPU: querying devices and their attributes needs no context, and the calls that make a
/// context for another device need none here. All others do.
bool needs_context(std::string_view function) {
  if (function == "cudaDeviceGetStreamPriorityRange") return true;
  return !of_driver(function) && !function.starts_with("cudaGet") &&
         !function.starts_with("cudaDeviceGet") && function != "cudaSetDevice" &&
         function != "cudaInitDevice" && function != "cudaDriverGetVersion";
}

/// Whether a call returns the error of a broken device.
bool needs_device(std::string_view function) {
  return needs_context(function) || function.starts_with("cuEvent") ||
         function.starts_with("cuStream") || function == "cuDevicePrimaryCtxRetain" ||
         function == "cudaSetDevice" || function == "cudaInitDevice";
}

}  // namespace

cudaError_t enter(const char* function) {
  std::chrono::nanoseconds stall{0};
  cudaError_t error = cudaSuccess;
  {
    std::lock_guard lock(machine().mutex);
    const std::uint64_t call = ++machine().calls[function];
    if (needs_context(function)) {
      machine().devices_used.insert(current_device());
      if (contexts().empty()) contexts().push_back(0);
    }
    for (const Machine::Plan& plan : machine().plans[function]) {
      if (call != plan.nth && !(plan.for_good && call > plan.nth)) continue;
      stall += plan.stall;
      if (plan.error != cudaSuccess) error = plan.error;
    }
    if (machine().broken != cudaSuccess && needs_device(function)) error = machine().broken;
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
  const auto look_at = [&](const std::shared_ptr<Capture>& capture) {
    if (capture == nullptr || capture->mode == cudaStreamCaptureModeRelaxed) return;
    const bool of_this_thread = capture->begun_by == std::this_thread::get_id();
    const bool of_any = capture->mode == cudaStreamCaptureModeGlobal &&
                        capture_mode() == cudaStreamCaptureModeGlobal;
    if (!of_this_thread && !of_any) return;
    capture->invalid = true;
    error = cudaErrorStreamCaptureUnsupported;
  };
  for (const cudaStream_t stream : machine().streams) look_at(stream->capture);
  for (const auto& [owner, stream] : machine().default_streams) look_at(stream->capture);
  return error;
}

cudaError_t enter_to_use(int device, const char* function) {
  bool has_context = false;
  {
    std::lock_guard lock(machine().mutex);
    has_context = machine().devices_used.contains(device);
  }
  return has_context ? enter(function) : enter_outside_captures(function);
}

cudaError_t use_device(int device) {
  std::lock_guard lock(machine().mutex);
  if (device < 0 || device >= machine().devices) return cudaErrorInvalidDevice;
  machine().devices_used.insert(device);
  return cudaSuccess;
}

std::shared_ptr<Queue> make_queue(int device) {
  auto queue = std::make_shared<Queue>(device);
  machine().queues.push_back(queue);
  machine().threads.emplace_back([queue] { queue->serve(); });
  return queue;
}

cudaStream_t stream_of(cudaStream_t handle) {
  std::thread::id owner{};
  if (handle == cudaStreamPerThread)
    owner = std::this_thread::get_id();
  else if (handle != nullptr && handle != cudaStreamLegacy)
    return machine().streams.contains(handle) ? handle : nullptr;
  const int device = current_device();
  auto& stream = machine().default_streams[{device, owner}];
  if (stream == nullptr)
    stream.reset(new CUstream_st{.device = device,
                                 .blocking = owner != std::thread::id{},
                                 .priority = 0,
                                 .queue = make_queue(device)});
  return stream.get();
}

bool is_legacy(const CUstream_st& stream) {
  const auto legacy = machine().default_streams.find({stream.device, {}});
  return legacy != machine().default_streams.end() && legacy->second.get() == &stream;
}

std::vector<cudaStream_t> blocking_streams(int device) {
  std::vector<cudaStream_t> blocking;
  const auto add = [&](cudaStream_t stream) {
    if (stream->blocking && stream->device == device) blocking.push_back(stream);
  };
  for (const cudaStream_t stream : machine().streams) add(stream);
  for (const auto& [owner, stream] : machine().default_streams) add(stream.get());
  return blocking;
}

namespace {

/// Makes `queue` wait for the work of `other` so far.
void wait_for(Queue& queue, Queue& other) {
  const auto point = std::make_shared<Point>();
  other.push([point] { point->pass(); });
  queue.push([point] { point->wait(); });
}

/// Keeps the order between the legacy default stream and blocking ones.
cudaError_t keep_default_order(cudaStream_t stream) {
  if (is_legacy(*stream)) {
    const auto blocking = blocking_streams(stream->device);
    cudaError_t error = cudaSuccess;
    for (const cudaStream_t other : blocking) {
      if (other->capture == nullptr) continue;
      other->capture->invalid = true;
      error = cudaErrorStreamCaptureImplicit;
    }
    if (error != cudaSuccess) return error;
    for (const cudaStream_t other : blocking) wait_for(*stream->queue, *other->queue);
  } else if (stream->blocking) {
    const auto legacy = machine().default_streams.find({stream->device, {}});
    if (legacy != machine().default_streams.end()) wait_for(*stream->queue, *legacy->second->queue);
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t give_locked(cudaStream_t handle, std::function<void()> work) {
  const cudaStream_t stream = stream_of(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (stream->capture == nullptr) {
    if (const cudaError_t error = keep_default_order(stream)) return error;
    stream->queue->push(std::move(work));
    return cudaSuccess;
  }
  if (stream->capture->invalid) return cudaErrorStreamCaptureInvalidated;
  stream->capture->work.push_back(std::move(work));
  ++stream->capture->streams[stream][stream];
  return cudaSuccess;
}

cudaError_t give(cudaStream_t handle, std::function<void()> work) {
  std::lock_guard lock(machine().mutex);
  return give_locked(handle, std::move(work));
}

namespace {

constexpr int all_devices = -1;
/// Deferred frees of other threads happen a little later.
constexpr std::chrono::seconds patience_with_returns{2};

}  // namespace

void drain_device(int device) {
  std::vector<std::shared_ptr<Queue>> queues;
  {
    std::lock_guard lock(machine().mutex);
    queues = machine().queues;
  }
  for (const auto& queue : queues)
    if (device == all_devices || queue->device == device) queue->drain();
}

void drain() { drain_device(all_devices); }

bool frees_at_once() {
  static const bool at_once = [] {
    const char* const mode = std::getenv("STAND_IN_CUDA_FREE");
    if (mode == nullptr || mode == std::string_view("waits")) return false;
    if (mode == std::string_view("at_once")) return true;
    throw std::logic_error("STAND_IN_CUDA_FREE is \"" + std::string(mode) +
                           "\", must be \"waits\" or \"at_once\"");
  }();
  return at_once;
}

void check_freed_memory() {
  std::lock_guard lock(machine().mutex);
  bool used = std::exchange(machine().late_copies, 0) > 0;
  for (const auto& [data, piece] : std::exchange(machine().freed_memory, {})) {
    const std::span bytes(static_cast<unsigned char*>(data), piece.bytes);
    used = used || std::ranges::any_of(bytes, [](auto byte) { return byte != freed_poison; });
    ::operator delete(data, std::align_val_t(device_alignment));
  }
  if (used) throw std::logic_error("work used memory that had been given back");
}

namespace {

/// Forgets objects that can no longer be freed.
void forget_all_of_broken_devices() {
  std::lock_guard lock(machine().mutex);
  if (std::exchange(machine().broken, cudaSuccess) == cudaSuccess) return;
  for (const cudaStream_t stream : std::exchange(machine().streams, {})) {
    stream->queue->close();
    delete stream;
  }
  for (const cudaEvent_t event : std::exchange(machine().events, {})) delete event;
  for (const cudaGraph_t graph : std::exchange(machine().graphs, {})) delete graph;
  for (const cudaGraphExec_t one : std::exchange(machine().graph_executions, {})) delete one;
  for (const auto& [data, piece] : std::exchange(machine().device_memory, {}))
    ::operator delete(data, std::align_val_t(device_alignment));
  machine().locked_memory.clear();
}

}  // namespace

void reset(int devices) {
  drain();
  forget_all_of_broken_devices();
  for (const auto end = Clock::now() + patience_with_returns; live() > 0 && Clock::now() < end;)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  if (const std::size_t left = live(); left > 0)
    throw std::logic_error(std::to_string(left) +
                           " streams, events, graphs or pieces of memory were not given back");
  check_freed_memory();
  std::vector<std::thread> threads;
  {
    std::lock_guard lock(machine().mutex);
    threads.swap(machine().threads);
    for (const auto& [owner, stream] : machine().default_streams) stream->queue->close();
    machine().default_streams.clear();
    machine().queues.clear();
    machine().devices = devices;
    machine().driver = CUDART_VERSION;
    machine().device_bytes = std::size_t{1} << 36;
    machine().copy_delay = std::chrono::microseconds(100);
    machine().clock_factor = 1;
    machine().plans.clear();
    machine().calls.clear();
    machine().devices_used.clear();
    machine().unlocked_copies = 0;
  }
  for (std::thread& thread : threads) thread.join();
  contexts().clear();
  last_error() = cudaSuccess;
  capture_mode() = cudaStreamCaptureModeGlobal;
}

void fail(const std::string& function, std::uint64_t nth, cudaError_t error, bool for_good) {
  std::lock_guard lock(machine().mutex);
  machine().plans[function].push_back(
      {.nth = machine().calls[function] + nth, .error = error, .for_good = for_good});
}

void break_devices(cudaError_t error) {
  std::lock_guard lock(machine().mutex);
  machine().broken = error;
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

void limit_memory(std::size_t bytes) {
  std::lock_guard lock(machine().mutex);
  machine().device_bytes = bytes;
}

void install_driver(int version) {
  std::lock_guard lock(machine().mutex);
  machine().driver = version;
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
  const std::uint64_t counted = calls("cudaStreamSynchronize") + calls("cudaEventSynchronize") +
                                calls("cudaFree") + calls("cudaHostUnregister");
  std::lock_guard lock(machine().mutex);
  return counted + machine().unlocked_copies;
}

std::vector<int> stream_priorities() {
  std::lock_guard lock(machine().mutex);
  std::vector<int> priorities;
  for (const cudaStream_t stream : machine().streams) priorities.push_back(stream->priority);
  return priorities;
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
