// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/host_device.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

namespace millrace::testing {

enum class DeviceCall {
  allocate_host,
  allocate_device,
  make_stream,
  make_event,
  copy,
  copy_on_device,
  convert,
  record,
  wait,
  event_wait,
  event_complete
};
inline constexpr std::size_t device_calls = 11;

inline const char* to_string(DeviceCall call) {
  static constexpr std::array<const char*, device_calls> names{
      "allocate_host", "allocate_device", "make_stream",   "make_event",
      "copy",          "copy_on_device",  "convert",       "record",
      "wait",          "event_wait",      "event_complete"};
  return names[static_cast<std::size_t>(call)];
}

inline void PrintTo(DeviceCall call, std::ostream* out) { *out << to_string(call); }

/// State that a `HookDevice`, its streams and events share: counts of all calls, and a hook that is
/// called before each of them and may throw or block.
struct DeviceHooks {
  std::function<void(DeviceCall)> on_call;
  /// Called before an event returns when it was passed; may block.
  std::function<void()> on_passed_at;
  /// Called with the stream before a copy is enqueued, so that a test can enqueue work before it.
  std::function<void(HostStream&)> before_copy;
  /// Called with the stream before a conversion is enqueued, so that a test can enqueue work before
  /// and after it.
  std::function<void(HostStream&)> before_convert;
  std::function<void(HostStream&)> after_convert;
  /// Called with the work that is launched on a stream.
  std::function<void(const DeviceWork&)> on_launch;
  std::array<std::atomic<std::uint64_t>, device_calls> counts{};
  std::atomic<std::size_t> host_bytes{0};
  std::atomic<std::size_t> device_bytes{0};

  void called(DeviceCall call) {
    ++counts[static_cast<std::size_t>(call)];
    if (on_call) on_call(call);
  }
  std::uint64_t count(DeviceCall call) const { return counts[static_cast<std::size_t>(call)]; }
};

class HookEvent final : public Event {
 public:
  HookEvent(std::shared_ptr<DeviceHooks> hooks, std::unique_ptr<Event> host)
      : hooks_(std::move(hooks)), host_(std::move(host)) {}
  bool complete() const override {
    hooks_->called(DeviceCall::event_complete);
    return host_->complete();
  }
  bool wait(std::chrono::nanoseconds timeout) const override {
    hooks_->called(DeviceCall::event_wait);
    return host_->wait(timeout);
  }
  std::optional<std::chrono::steady_clock::time_point> passed_at() const override {
    if (hooks_->on_passed_at) hooks_->on_passed_at();
    return host_->passed_at();
  }
  Event& host() const { return *host_; }

 private:
  std::shared_ptr<DeviceHooks> hooks_;
  std::unique_ptr<Event> host_;
};

class HookStream final : public Stream {
 public:
  explicit HookStream(std::shared_ptr<DeviceHooks> hooks) : hooks_(std::move(hooks)) {}
  void copy(void* destination, const void* source, std::size_t bytes) override {
    hooks_->called(DeviceCall::copy);
    if (hooks_->before_copy) hooks_->before_copy(host_);
    host_.copy(destination, source, bytes);
  }
  void copy_on_device(void* destination, const void* source, std::size_t bytes) override {
    hooks_->called(DeviceCall::copy_on_device);
    host_.copy_on_device(destination, source, bytes);
  }
  void copy_to_host(void* destination, const void* source, std::size_t bytes) override {
    host_.copy_to_host(destination, source, bytes);
  }
  void launch(const DeviceWork& work) override {
    hooks_->called(DeviceCall::convert);
    if (hooks_->on_launch) hooks_->on_launch(work);
    if (hooks_->before_convert) hooks_->before_convert(host_);
    host_.launch(work);
    if (hooks_->after_convert) hooks_->after_convert(host_);
  }
  void record(Event& event) override {
    hooks_->called(DeviceCall::record);
    host_.record(dynamic_cast<HookEvent&>(event).host());
  }
  void wait(const Event& event) override {
    hooks_->called(DeviceCall::wait);
    host_.wait(dynamic_cast<const HookEvent&>(event).host());
  }
  void synchronize() override { host_.synchronize(); }
  bool capturing() const override { return capturing_; }
  void set_capturing(bool capturing) { capturing_ = capturing; }
  /// The stream below, for steps and launches.
  HostStream& host() { return host_; }

 private:
  std::shared_ptr<DeviceHooks> hooks_;
  std::atomic<bool> capturing_{false};
  HostStream host_;
};

/// A host device that counts every call and lets a test fail or block any of them.
class HookDevice final : public Device {
 public:
  explicit HookDevice(bool copies, std::function<void(DeviceCall)> on_call = {},
                      ProfilerRanges* profiler = nullptr)
      : host_({.copies = copies}), profiler_(profiler) {
    hooks_->on_call = std::move(on_call);
  }

  std::string name() const override { return "hook"; }
  bool copies() const override { return host_.copies(); }
  Memory allocate_host(std::size_t bytes, const NumaNode& node) override {
    hooks_->called(DeviceCall::allocate_host);
    hooks_->host_bytes += bytes;
    return host_.allocate_host(bytes, node);
  }
  Memory allocate_device(std::size_t bytes) override {
    hooks_->called(DeviceCall::allocate_device);
    hooks_->device_bytes += bytes;
    return host_.allocate_device(bytes);
  }
  std::unique_ptr<Stream> make_stream() override {
    hooks_->called(DeviceCall::make_stream);
    return std::make_unique<HookStream>(hooks_);
  }
  std::unique_ptr<Event> make_event() override {
    hooks_->called(DeviceCall::make_event);
    return std::make_unique<HookEvent>(hooks_, host_.make_event());
  }
  ProfilerRanges* profiler() override { return profiler_; }
  /// Makes a stream for the test's own trainer. Making it is not counted and cannot fail.
  std::unique_ptr<HookStream> trainer_stream() { return std::make_unique<HookStream>(hooks_); }

  DeviceHooks& hooks() const { return *hooks_; }

 private:
  HostDevice host_;
  ProfilerRanges* profiler_;
  std::shared_ptr<DeviceHooks> hooks_ = std::make_shared<DeviceHooks>();
};

}  // namespace millrace::testing
