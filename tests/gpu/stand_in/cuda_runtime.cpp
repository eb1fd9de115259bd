// SPDX-License-Identifier: Apache-2.0
//
// The CUDA runtime's functions, over the stand-in's machine.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>
#include <new>

#include "stand_in/machine.h"
#include "stand_in/stand_in_cuda.h"

using millrace::testing::stand_in::current_device;
using millrace::testing::stand_in::drain;
using millrace::testing::stand_in::enter;
using millrace::testing::stand_in::enter_outside_captures;
using millrace::testing::stand_in::give_locked;
using millrace::testing::stand_in::machine;
using millrace::testing::stand_in::Point;
using millrace::testing::stand_in::Queue;

namespace {

constexpr std::size_t device_alignment = 256;
constexpr std::size_t device_bytes = std::size_t{1} << 36;
constexpr int taken_poison = 0xDB;
constexpr int freed_poison = 0xDD;

/// Whether all of [data, data + bytes) lies in one piece.
bool within(const std::map<void*, std::size_t>& pieces, const void* data, std::size_t bytes) {
  auto after = pieces.upper_bound(const_cast<void*>(data));
  if (after == pieces.begin()) return false;
  const auto& [begin, size] = *std::prev(after);
  const auto offset =
      static_cast<std::size_t>(static_cast<const char*>(data) - static_cast<const char*>(begin));
  return offset + bytes <= size;
}

}  // namespace

namespace {

cudaError_t create_stream(cudaStream_t* stream) {
  auto queue = std::make_shared<Queue>();
  *stream = new CUstream_st{.device = current_device(), .queue = queue};
  std::lock_guard lock(machine().mutex);
  machine().streams.insert(*stream);
  machine().queues.push_back(queue);
  machine().threads.emplace_back([queue] { queue->serve(); });
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  if (const cudaError_t error = enter("cudaGetDeviceCount")) return error;
  std::lock_guard lock(machine().mutex);
  *count = machine().devices;
  return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaGetDevice(int* device) {
  if (const cudaError_t error = enter("cudaGetDevice")) return error;
  *device = current_device();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t error = enter("cudaSetDevice")) return error;
  std::lock_guard lock(machine().mutex);
  if (device < 0 || device >= machine().devices) return cudaErrorInvalidDevice;
  current_device() = device;
  machine().devices_used.insert(device);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (const cudaError_t error = enter("cudaDeviceGetAttribute")) return error;
  std::lock_guard lock(machine().mutex);
  if (device < 0 || device >= machine().devices) return cudaErrorInvalidDevice;
  if (attribute != cudaDevAttrMultiProcessorCount) return cudaErrorInvalidValue;
  *value = 2;
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* /*function*/) {
  if (const cudaError_t error = enter_outside_captures("cudaFuncGetAttributes")) return error;
  *attributes = {};
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  if (const cudaError_t error = enter("cudaDeviceGetPCIBusId")) return error;
  std::snprintf(id, static_cast<std::size_t>(length), "FFFF:%02X:00.0",
                static_cast<unsigned>(device) & 0xFFU);
  return cudaSuccess;
}

const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaSuccess ? "cudaSuccess" : "cudaErrorOfTheStandIn";
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess         ? "no error"
         : error == cudaErrorNoDevice ? "no CUDA-capable device is detected"
                                      : "a planned error";
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  if (const cudaError_t error = enter("cudaStreamCreateWithFlags")) return error;
  return create_stream(stream);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned /*flags*/,
                                         int /*priority*/) {
  if (const cudaError_t error = enter("cudaStreamCreateWithPriority")) return error;
  return create_stream(stream);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (const cudaError_t error = enter("cudaDeviceGetStreamPriorityRange")) return error;
  *least = 0;
  *greatest = -5;
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
  if (const cudaError_t error = enter_outside_captures("cudaStreamSynchronize")) return error;
  const auto end = std::make_shared<Point>();
  {
    std::lock_guard lock(machine().mutex);
    if (machine().streams.contains(stream) && stream->capture != nullptr) {
      stream->capture->invalid = true;
      return cudaErrorStreamCaptureUnsupported;
    }
    if (const cudaError_t error = give_locked(stream, [end] { end->pass(); })) return error;
  }
  end->wait();
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  if (const cudaError_t error = enter("cudaStreamWaitEvent")) return error;
  std::lock_guard lock(machine().mutex);
  if (!machine().streams.contains(stream) || !machine().events.contains(event))
    return cudaErrorInvalidResourceHandle;
  const auto captured_in = event->capture.lock();
  if (captured_in != nullptr && captured_in == stream->capture) return cudaSuccess;
  if (captured_in != nullptr) return cudaErrorStreamCaptureUnsupported;
  // The point of the latest record before this call, as CUDA has it.
  const auto point = event->point;
  if (point == nullptr) return cudaSuccess;
  if (stream->capture != nullptr) {
    stream->capture->invalid = true;
    return cudaErrorStreamCaptureIsolation;
  }
  return give_locked(stream, [point] { point->wait(); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (const cudaError_t error = enter("cudaEventCreateWithFlags")) return error;
  *event = new CUevent_st{
      .device = current_device(), .timed = (flags & cudaEventDisableTiming) == 0, .point = nullptr};
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
  if (!machine().streams.contains(stream) || !machine().events.contains(event))
    return cudaErrorInvalidResourceHandle;
  if (stream->device != event->device) return cudaErrorInvalidResourceHandle;
  event->capture = stream->capture;
  if (stream->capture != nullptr) {
    event->point = nullptr;
    return stream->capture->invalid ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
  }
  const auto point = std::make_shared<Point>();
  event->point = point;
  return give_locked(stream, [point] { point->pass(); });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t error = enter_outside_captures("cudaEventQuery")) return error;
  std::lock_guard lock(machine().mutex);
  if (!machine().events.contains(event)) return cudaErrorInvalidResourceHandle;
  if (!event->capture.expired()) return cudaErrorCapturedEvent;
  return event->point == nullptr || event->point->passed() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (const cudaError_t error = enter("cudaEventElapsedTime")) return error;
  std::lock_guard lock(machine().mutex);
  if (!machine().events.contains(start) || !machine().events.contains(end))
    return cudaErrorInvalidResourceHandle;
  if (!start->timed || !end->timed || start->point == nullptr || end->point == nullptr)
    return cudaErrorInvalidResourceHandle;
  const auto begun = start->point->passed();
  const auto ended = end->point->passed();
  if (!begun || !ended) return cudaErrorNotReady;
  const std::chrono::duration<double, std::milli> elapsed = *ended - *begun;
  *milliseconds = static_cast<float>(elapsed.count() * machine().clock_factor);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  if (const cudaError_t error = enter_outside_captures("cudaMalloc")) return error;
  *data = ::operator new(bytes, std::align_val_t(device_alignment));
  std::memset(*data, taken_poison, bytes);
  std::lock_guard lock(machine().mutex);
  machine().device_memory[*data] = bytes;
  return cudaSuccess;
}

cudaError_t cudaFree(void* data) {
  if (const cudaError_t error = enter_outside_captures("cudaFree")) return error;
  drain();  // the real one waits for the device, too
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

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* all) {
  if (const cudaError_t error = enter("cudaMemGetInfo")) return error;
  std::lock_guard lock(machine().mutex);
  *all = device_bytes;
  *free = device_bytes;
  for (const auto& [data, bytes] : machine().device_memory) *free -= bytes;
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* data, std::size_t bytes, unsigned /*flags*/) {
  if (const cudaError_t error = enter_outside_captures("cudaHostRegister")) return error;
  std::lock_guard lock(machine().mutex);
  const bool fresh = machine().locked_memory.emplace(data, bytes).second;
  return fresh ? cudaSuccess : cudaErrorHostMemoryAlreadyRegistered;
}

cudaError_t cudaHostUnregister(void* data) {
  if (const cudaError_t error = enter_outside_captures("cudaHostUnregister")) return error;
  drain();
  std::lock_guard lock(machine().mutex);
  return machine().locked_memory.erase(data) > 0 ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (const cudaError_t error = enter("cudaMemcpyAsync")) return error;
  std::lock_guard lock(machine().mutex);
  if (!machine().streams.contains(stream)) return cudaErrorInvalidResourceHandle;
  const bool from_host = kind == cudaMemcpyHostToDevice;
  const bool to_host = kind == cudaMemcpyDeviceToHost;
  if (!from_host && !within(machine().device_memory, from, bytes)) return cudaErrorInvalidValue;
  if (!to_host && !within(machine().device_memory, to, bytes)) return cudaErrorInvalidValue;
  if ((from_host && !within(machine().locked_memory, from, bytes)) ||
      (to_host && !within(machine().locked_memory, to, bytes)))
    ++machine().unlocked_copies;
  return give_locked(stream, [to, from, bytes, delay = machine().copy_delay] {
    std::this_thread::sleep_for(delay);
    std::memcpy(to, from, bytes);
  });
}

}  // extern "C"
