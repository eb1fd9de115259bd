// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/batch.h>
#include <millrace/batch_transform.h>
#include <millrace/dataset.h>
#include <millrace/device.h>
#include <millrace/millrace.h>
#include <millrace/order.h>
#include <millrace/pipeline.h>
#include <millrace/runtime.h>
#include <millrace/transform.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace millrace::c {

/// Returns the number of fork() calls between the process that made the first handle and this one.
unsigned forks();

/// A batch and its mutex: a handle may be used by several threads at once, a `Batch` object may
/// not.
struct HeldBatch {
  /// Whether this process made the batch, not a parent before fork().
  bool is_own() const { return forks() == forks_before; }
  /// Locks the mutex to read the batch. In a child of fork() it is left unlocked: a thread that
  /// does not exist there may have locked it.
  std::unique_lock<std::mutex> lock() {
    return is_own() ? std::unique_lock(mutex) : std::unique_lock(mutex, std::defer_lock);
  }

  unsigned forks_before = forks();
  std::mutex mutex;
  Batch batch;
  /// Streams that use the batch, by number. Each is recorded once.
  std::map<std::uintptr_t, std::shared_ptr<Stream>> streams;
};

/// The type behind each kind of handle. The address of `name` identifies the kind.
template <typename Handle>
struct Held;
template <>
struct Held<millrace_dataset> {
  using Type = const Dataset;
  static constexpr char name[] = "dataset";
};
template <>
struct Held<millrace_transform> {
  using Type = const Transform;
  static constexpr char name[] = "transform";
};
template <>
struct Held<millrace_runtime> {
  using Type = Runtime;
  static constexpr char name[] = "runtime";
};
template <>
struct Held<millrace_order> {
  using Type = const Order;
  static constexpr char name[] = "order";
};
template <>
struct Held<millrace_batch_transform> {
  using Type = const BatchTransform;
  static constexpr char name[] = "batch transform";
};
template <>
struct Held<millrace_pipeline> {
  using Type = Pipeline;
  static constexpr char name[] = "pipeline";
};
template <>
struct Held<millrace_batch> {
  using Type = HeldBatch;
  static constexpr char name[] = "batch";
};

/// Adds an object to the table and returns its handle. A handle is a number that is never used
/// twice, not an address, and is never dereferenced. So a handle that was freed, made up or of
/// another kind is detected. `kind` is one of the constants `Held::name`.
std::uintptr_t put_object(std::shared_ptr<const void> object, const char* kind);
/// Returns the object of a handle. Throws `Error` (`invalid_argument`) if the handle is not valid.
std::shared_ptr<const void> get_object(std::uintptr_t handle, const char* kind);
/// Removes a handle from the table and returns its object; null if the handle is not valid.
std::shared_ptr<const void> take_object(std::uintptr_t handle, const char* kind) noexcept;

/// Makes a handle that shares the object.
template <typename Handle>
Handle* put(std::shared_ptr<typename Held<Handle>::Type> object) {
  const std::uintptr_t number = put_object(std::move(object), Held<Handle>::name);
  return reinterpret_cast<Handle*>(number);  // NOLINT(performance-no-int-to-ptr)
}

/// Returns the handle's object, which lives at least as long as the returned pointer.
template <typename Handle>
std::shared_ptr<typename Held<Handle>::Type> get(const Handle* handle) {
  using Type = typename Held<Handle>::Type;
  auto object = get_object(reinterpret_cast<std::uintptr_t>(handle), Held<Handle>::name);
  return std::static_pointer_cast<Type>(std::const_pointer_cast<void>(std::move(object)));
}

/// Frees the handle, and its object if nothing else shares it.
template <typename Handle>
void drop(Handle* handle) noexcept {
  take_object(reinterpret_cast<std::uintptr_t>(handle), Held<Handle>::name);
}

}  // namespace millrace::c
