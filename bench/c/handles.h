// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/batch.h>
#include <millrace/dataset.h>
#include <millrace/device.h>
#include <millrace/millrace.h>
#include <millrace/pipeline.h>
#include <millrace/runtime.h>
#include <millrace/transform.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace millrace::c {

/// A run, and the device that its streams are of.
struct HeldPipeline {
  Pipeline pipeline;
  DeviceId device;
};

/// One `Batch` object is not for two threads at once, a handle is.
struct HeldBatch {
  std::mutex mutex;
  Batch batch;
  /// Those that it is used on, by their numbers: each is told to the batch once.
  std::map<std::uintptr_t, std::shared_ptr<Stream>> streams;
};

/// What each kind of handle stands for. The address of its name tells it from the others.
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
struct Held<millrace_pipeline> {
  using Type = HeldPipeline;
  static constexpr char name[] = "pipeline";
};
template <>
struct Held<millrace_batch> {
  using Type = HeldBatch;
  static constexpr char name[] = "batch";
};

/// Of no kind. A handle is no address but a number that is never given twice, so that one which was
/// freed, made up or of another kind is found out, and never followed. `kind` is one of
/// `Held::name`, which is a constant.
std::uintptr_t put_object(std::shared_ptr<const void> object, const char* kind);
/// Throws `Error` (`invalid_argument`) that says what is wrong with the handle.
std::shared_ptr<const void> get_object(std::uintptr_t handle, const char* kind);
/// Null if there is no such handle.
std::shared_ptr<const void> take_object(std::uintptr_t handle, const char* kind) noexcept;

/// A new handle, which shares the object.
template <typename Handle>
Handle* put(std::shared_ptr<typename Held<Handle>::Type> object) {
  const std::uintptr_t number = put_object(std::move(object), Held<Handle>::name);
  return reinterpret_cast<Handle*>(number);  // NOLINT(performance-no-int-to-ptr)
}

/// The handle's object, which stays as long as the caller has it.
template <typename Handle>
std::shared_ptr<typename Held<Handle>::Type> get(const Handle* handle) {
  using Type = typename Held<Handle>::Type;
  auto object = get_object(reinterpret_cast<std::uintptr_t>(handle), Held<Handle>::name);
  return std::static_pointer_cast<Type>(std::const_pointer_cast<void>(std::move(object)));
}

/// The handle is no more. Its object goes here if nobody else has it.
template <typename Handle>
void drop(Handle* handle) noexcept {
  take_object(reinterpret_cast<std::uintptr_t>(handle), Held<Handle>::name);
}

}  // namespace millrace::c
