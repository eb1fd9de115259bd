// SPDX-License-Identifier: Apache-2.0
//
// How memory, streams and events go back to their device. To give them back may wait for all work
// of the device (cudaFree, cudaHostUnregister), which may never end. So each device has a thread
// that does nothing else, and nobody waits for it.
#pragma once

#include <cuda_runtime_api.h>
#include <millrace/device.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>

namespace millrace {

struct Loan;

/// The way back to one device, and its thread. It is shared by all that uses the device and ends
/// when nobody does and everything is back; where the device hangs, it stays. All methods may be
/// called from any thread at once. A child of fork() has neither the thread nor what it may have
/// locked, and CUDA does not work there: `here` tells.
class Returns {
 public:
  /// Those of a device, for one more user. Throws `Error` (`device`) where no thread can be
  /// started, and in a child of the process that used a device.
  static std::shared_ptr<Returns> of(int device);
  /// Whether this is the process that made it. In another one no other method may be called.
  bool here() const { return getpid() == process_; }
  /// One user less.
  void leave() noexcept;

  /// Takes the loan, to give it back later and end its use. Neither waits nor allocates.
  void put(Loan* loan) noexcept;
  /// Waits until all that was put here is back, or until the time is over.
  void wait(std::chrono::milliseconds timeout) noexcept;
  /// Waits as `wait`, then gives nothing back any more: the process ends, and the driver takes back
  /// what is left.
  void close(std::chrono::milliseconds timeout) noexcept;

 private:
  bool join();
  void serve(int device) noexcept;

  const pid_t process_ = getpid();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t users_ = 1;
  Loan* first_ = nullptr;
  Loan* last_ = nullptr;
  /// Whether the thread gives something back just now.
  bool returning_ = false;
  bool closed_ = false;
  bool ended_ = false;
};

/// Something of a device that is to be given back. It is made before that is taken, so that nothing
/// can fail at the end.
struct Loan {
  /// Throws as `Returns::of`.
  Loan(int device, const char* give_back_call, cudaError_t (*give_back_function)(void*))
      : returns(Returns::of(device)), call(give_back_call), function(give_back_function) {}

  std::shared_ptr<Returns> returns;
  const char* call;
  cudaError_t (*function)(void*);
  /// Null while nothing was taken.
  void* what = nullptr;
  /// Host memory that goes behind it.
  Memory pages{};
  Loan* next = nullptr;
};

/// Ends a loan: it goes on its way back. Tells `note_blocking_call`, since that is no call for the
/// batch path. In a child of fork() the loan stays as it is for good.
struct EndLoan {
  void operator()(Loan* loan) const noexcept;
};
using LoanHandle = std::unique_ptr<Loan, EndLoan>;

}  // namespace millrace
