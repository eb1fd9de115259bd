// SPDX-License-Identifier: Apache-2.0
//
// Deferred free of memory, streams and events of a device. Freeing them may wait for all work of
// the device (cudaFree, cudaHostUnregister), which may never end. So each device has a thread that
// frees. Other threads wait for it only with a timeout.
#pragma once

#include <cuda_runtime_api.h>
#include <millrace/device.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

namespace millrace {

struct DeferredFree;

/// Returns the reason why CUDA does not work in a child of fork() whose parent has used a device;
/// empty in any other process.
std::string why_not_after_fork();
/// Throws `Error` (`device`) with that reason, if there is one.
void check_not_forked();

/// The queue of deferred frees of one device, and the thread that frees. All users of the device
/// share it. The thread ends when the queue is empty and has no users; if the device hangs, it
/// stays. All methods may be called by several threads at the same time. A child of fork() has
/// neither the thread nor a consistent mutex, and CUDA does not work there: check
/// `is_owner_process`.
class DeallocationQueue {
 public:
  /// Returns the queue of a device, for one more user. Throws `Error` (`device`) if the thread
  /// cannot be started, and in a child of a process that used a device.
  static std::shared_ptr<DeallocationQueue> of(int device);
  /// Whether the calling process made the queue. In another process no other method may be called.
  bool is_owner_process() const { return getpid() == process_; }
  /// Removes one user.
  void remove_user() noexcept;

  /// Enqueues a deferred free: the thread frees the object later and then removes one user. Neither
  /// waits nor allocates.
  void put(DeferredFree* deferred) noexcept;
  /// Waits until all enqueued objects are freed, or until the timeout.
  void wait(std::chrono::milliseconds timeout) noexcept;
  /// Waits like `wait`. Afterwards the thread frees nothing more: the process ends, and the driver
  /// frees the rest.
  void close(std::chrono::milliseconds timeout) noexcept;

 private:
  bool add_user();
  void serve(int device) noexcept;

  const pid_t process_ = getpid();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t users_ = 1;
  DeferredFree* first_ = nullptr;
  DeferredFree* last_ = nullptr;
  /// Whether the thread is freeing something now.
  bool freeing_ = false;
  bool closed_ = false;
  bool ended_ = false;
};

/// An object of a device that is to be freed later. It is made before the object is allocated, so
/// that nothing can fail when it is freed.
struct DeferredFree {
  /// Throws like `DeallocationQueue::of`.
  DeferredFree(int device, const char* free_call, cudaError_t (*free_function)(void*))
      : queue(DeallocationQueue::of(device)), call(free_call), function(free_function) {}

  std::shared_ptr<DeallocationQueue> queue;
  const char* call;
  cudaError_t (*function)(void*);
  /// The object; null before it is allocated.
  void* object = nullptr;
  /// Host memory that is freed after the object.
  Memory pages{};
  DeferredFree* next = nullptr;
};

/// Enqueues the deferred free of an object. Reports it to `note_blocking_call`, because freeing is
/// not allowed while a batch is produced. In a child of fork() the object is never freed.
struct EnqueueFree {
  void operator()(DeferredFree* deferred) const noexcept;
};
using DeferredFreeHandle = std::unique_ptr<DeferredFree, EnqueueFree>;

}  // namespace millrace
