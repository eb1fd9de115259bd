// SPDX-License-Identifier: Apache-2.0
// Work that a stream does by a kernel: the kernel's arguments. This header is for code that
// implements `Device` or a kernel; trainers do not need it.
//
// Threads: a `DeviceWork` is for the thread that makes it.
// Lifetimes: a `DeviceWork` refers to the arguments that it was made from. A stream copies the
// arguments that it needs before `launch` returns. The memory that the arguments point to must stay
// valid until the stream has done the work.
#pragma once

#include <millrace/detail/export.h>

#include <concepts>
#include <functional>
#include <type_traits>
#include <typeinfo>

namespace MILLRACE_API millrace {

/// The arguments of a kernel: a plain struct with the kernel's name. `run_on_host` does the same
/// work on the host; devices must give the same result. For example:
///     struct FlipWork {
///       static constexpr const char* kernel = "flip";
///       std::uint8_t* pixels = nullptr;
///       void run_on_host() const;  // must not throw
///     };
template <typename Work>
concept KernelArguments = std::is_trivially_copyable_v<Work> && requires(const Work& work) {
  { Work::kernel } -> std::convertible_to<const char*>;
  work.run_on_host();
};

/// Holds the arguments of any kernel by reference. Each device finds its own kernel by the type of
/// the arguments.
class DeviceWork {
 public:
  /// Implicit, so that callers can write `stream.launch(FlipWork{...})`.
  template <KernelArguments Work>
  DeviceWork(const Work& work)  // NOLINT(google-explicit-constructor)
      : arguments_(&work),
        type_(&typeid(Work)),
        kernel_(Work::kernel),
        on_host_([](const void* arguments) -> std::function<void()> {
          return [work = *static_cast<const Work*>(arguments)] { work.run_on_host(); };
        }) {}

  /// The kernel's name, for messages.
  const char* kernel() const { return kernel_; }
  /// The arguments as a `Work`; null if they are of another type.
  template <KernelArguments Work>
  const Work* as() const {
    return *type_ == typeid(Work) ? static_cast<const Work*>(arguments_) : nullptr;
  }
  /// Returns a function that does the work on the host, with a copy of the arguments.
  std::function<void()> on_host() const { return on_host_(arguments_); }

 private:
  const void* arguments_;
  const std::type_info* type_;
  const char* kernel_;
  std::function<void()> (*on_host_)(const void* arguments);
};

}  // namespace millrace
