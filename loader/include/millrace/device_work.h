// SPDX-License-Identifier: Apache-2.0
// What a stream is given to do beside copies and events, by `Stream::launch`. It is public for those
// who write a device or a kernel; a trainer needs none of it.
//
// Threads: a `DeviceWork` is for the thread that makes it.
// Lifetimes: it refers to the arguments that it was made of, so these outlive it. A stream copies
// what it needs of them before `launch` returns; the memory that they point to must be there until
// the stream has done the work.
#pragma once

#include <concepts>
#include <functional>
#include <type_traits>
#include <typeinfo>

namespace millrace {

/// The arguments of a kernel: a plain struct that has the kernel's name and does its work on the
/// host, which is the reference for what devices do:
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

/// A kernel's arguments of whatever kind. A device looks for a kernel of its own for them.
class DeviceWork {
 public:
  /// Not explicit, so that `stream.launch(FlipWork{...})` is what one writes.
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
  /// The arguments if they are a `Work`, else null.
  template <KernelArguments Work>
  const Work* as() const {
    return *type_ == typeid(Work) ? static_cast<const Work*>(arguments_) : nullptr;
  }
  /// The work as a function that does it on the host, with a copy of the arguments.
  std::function<void()> on_host() const { return on_host_(arguments_); }

 private:
  const void* arguments_;
  const std::type_info* type_;
  const char* kernel_;
  std::function<void()> (*on_host_)(const void* arguments);
};

}  // namespace millrace
