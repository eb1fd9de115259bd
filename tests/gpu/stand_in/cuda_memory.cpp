// SPDX-License-Identifier: Apache-2.0
//
// The CUDA runtime's functions for memory and copies, over the stand-in's machine.
#include <cuda_runtime_api.h>

#include <cstring>
#include <iterator>
#include <memory>
#include <new>

#include "stand_in/machine.h"
#include "stand_in/stand_in_cuda.h"

using millrace::testing::stand_in::call;
using millrace::testing::stand_in::call_outside_captures;
using millrace::testing::stand_in::current_device;
using millrace::testing::stand_in::device_alignment;
using millrace::testing::stand_in::DevicePiece;
using millrace::testing::stand_in::drain;
using millrace::testing::stand_in::drain_device;
using millrace::testing::stand_in::freed_poison;
using millrace::testing::stand_in::frees_at_once;
using millrace::testing::stand_in::give_locked;
using millrace::testing::stand_in::machine;
using millrace::testing::stand_in::Point;
using millrace::testing::stand_in::stream_of;

namespace {

constexpr std::size_t host_alignment = 4096;
constexpr int taken_poison = 0xDB;

std::size_t bytes_of(std::size_t bytes) { return bytes; }
std::size_t bytes_of(const DevicePiece& piece) { return piece.bytes; }

/// The piece that contains all of [data, data + bytes); null if it does not exist.
template <typename Piece>
const Piece* piece_around(const std::map<void*, Piece>& pieces, const void* data,
                          std::size_t bytes) {
  auto after = pieces.upper_bound(const_cast<void*>(data));
  if (after == pieces.begin()) return nullptr;
  const auto& [begin, piece] = *std::prev(after);
  const auto offset =
      static_cast<std::size_t>(static_cast<const char*>(data) - static_cast<const char*>(begin));
  return offset + bytes <= bytes_of(piece) ? &piece : nullptr;
}

std::size_t free_bytes() {
  std::size_t free = machine().device_bytes;
  for (const auto& [data, piece] : machine().device_memory)
    if (piece.device == current_device()) free -= piece.bytes;
  return free;
}

/// Whether [data, data + bytes) is device memory that a stream of `device` may use. The stand-in's
/// devices cannot access each other's memory.
bool on_device(const void* data, std::size_t bytes, int device) {
  const DevicePiece* const piece = piece_around(machine().device_memory, data, bytes);
  return piece != nullptr && piece->device == device;
}

/// A copy that a stream has reached. Its memory may have been freed since, if a free does not wait:
/// its result is then poison.
struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
  bool from_locked;
  bool from_device;
  bool to_device;

  void run() const {
    std::lock_guard lock(machine().mutex);  // nothing is freed meanwhile
    if (machine().broken != cudaSuccess) return;
    const auto& pieces = machine().device_memory;
    const bool has_source =
        (!from_locked || piece_around(machine().locked_memory, from, bytes) != nullptr) &&
        (!from_device || piece_around(pieces, from, bytes) != nullptr);
    const bool has_destination = !to_device || piece_around(pieces, to, bytes) != nullptr;
    if (!has_source || !has_destination) ++machine().late_copies;
    if (!has_destination) return;
    if (has_source)
      std::memcpy(to, from, bytes);
    else
      std::memset(to, freed_poison, bytes);
  }
};

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  return call_outside_captures("cudaMalloc", [&] {
    std::lock_guard lock(machine().mutex);
    if (bytes > free_bytes()) return cudaErrorMemoryAllocation;
    *data = ::operator new(bytes, std::align_val_t(device_alignment));
    std::memset(*data, taken_poison, bytes);
    machine().device_memory[*data] = {bytes, current_device()};
    return cudaSuccess;
  });
}

// Waits for all work of the memory's device, as the real one did until CUDA 11, or does not wait.
cudaError_t cudaFree(void* data) {
  return call_outside_captures("cudaFree", [&] {
    if (data == nullptr) return cudaSuccess;
    int device = 0;
    {
      std::lock_guard lock(machine().mutex);
      const auto found = machine().device_memory.find(data);
      if (found == machine().device_memory.end()) return cudaErrorInvalidValue;
      device = found->second.device;
    }
    if (!frees_at_once()) drain_device(device);
    std::lock_guard lock(machine().mutex);
    const auto freed = machine().device_memory.extract(data);
    if (freed.empty()) return cudaErrorInvalidValue;
    std::memset(data, freed_poison, freed.mapped().bytes);
    if (frees_at_once())
      machine().freed_memory.emplace(data, freed.mapped());
    else
      ::operator delete(data, std::align_val_t(device_alignment));
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* all) {
  return call("cudaMemGetInfo", [&] {
    std::lock_guard lock(machine().mutex);
    *all = machine().device_bytes;
    *free = free_bytes();
    return cudaSuccess;
  });
}

cudaError_t cudaHostRegister(void* data, std::size_t bytes, unsigned /*flags*/) {
  return call_outside_captures("cudaHostRegister", [&] {
    std::lock_guard lock(machine().mutex);
    auto& locked = machine().locked_memory;
    const auto after = locked.lower_bound(static_cast<char*>(data) + bytes);
    if (after != locked.begin()) {
      const auto& [begin, size] = *std::prev(after);
      if (static_cast<char*>(begin) + size > data) return cudaErrorHostMemoryAlreadyRegistered;
    }
    locked.emplace(data, bytes);
    return cudaSuccess;
  });
}

// All devices can access registered memory. So if the call waits, it waits for all of them.
cudaError_t cudaHostUnregister(void* data) {
  return call_outside_captures("cudaHostUnregister", [&] {
    if (!frees_at_once()) drain();
    std::lock_guard lock(machine().mutex);
    return machine().locked_memory.erase(data) > 0 ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
  });
}

cudaError_t cudaMallocHost(void** data, std::size_t bytes) {
  return call_outside_captures("cudaMallocHost", [&] {
    *data = ::operator new(bytes, std::align_val_t(host_alignment));
    std::memset(*data, taken_poison, bytes);
    std::lock_guard lock(machine().mutex);
    machine().locked_memory.emplace(*data, bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaFreeHost(void* data) {
  return call_outside_captures("cudaFreeHost", [&] {
    if (!frees_at_once()) drain();
    std::lock_guard lock(machine().mutex);
    if (machine().locked_memory.erase(data) == 0) return cudaErrorInvalidValue;
    ::operator delete(data, std::align_val_t(host_alignment));
    return cudaSuccess;
  });
}

// If host memory is not page-locked, the call returns after the copy.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t handle) {
  return call("cudaMemcpyAsync", [&] {
    std::shared_ptr<Point> waited_for;
    {
      std::lock_guard lock(machine().mutex);
      const cudaStream_t stream = stream_of(handle);
      if (stream == nullptr) return cudaErrorInvalidResourceHandle;
      const bool from_host = kind == cudaMemcpyHostToDevice;
      const bool to_host = kind == cudaMemcpyDeviceToHost;
      if (!from_host && !on_device(from, bytes, stream->device)) return cudaErrorInvalidValue;
      if (!to_host && !on_device(to, bytes, stream->device)) return cudaErrorInvalidValue;
      const auto is_locked = [bytes](const void* data) {
        return piece_around(machine().locked_memory, data, bytes) != nullptr;
      };
      if ((from_host && !is_locked(from)) || (to_host && !is_locked(to))) {
        ++machine().unlocked_copies;
        if (stream->capture == nullptr) waited_for = std::make_shared<Point>();
      }
      const Copy copy{.to = to,
                      .from = from,
                      .bytes = bytes,
                      .from_locked = from_host && is_locked(from),
                      .from_device = !from_host,
                      .to_device = !to_host};
      const auto work = [copy, waited_for, delay = machine().copy_delay] {
        std::this_thread::sleep_for(delay);
        copy.run();
        if (waited_for != nullptr) waited_for->pass();
      };
      if (const cudaError_t error = give_locked(handle, work)) return error;
    }
    if (waited_for != nullptr) waited_for->wait();
    return cudaSuccess;
  });
}

}  // extern "C"
