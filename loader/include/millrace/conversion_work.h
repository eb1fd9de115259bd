// SPDX-License-Identifier: Apache-2.0
// The kernel that converts a batch's images, as streams are given it. It is public for those who
// write a device; a trainer sets `PipelineOptions::conversion`.
//
// Threads: `run_on_host` may be called on any thread, `HostWorkers::share` on several at once.
// Lifetimes: the memory that a `ConversionWork` points to must be there until the work is done.
#pragma once

#include <millrace/conversion.h>
#include <millrace/detail/export.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace MILLRACE_API millrace {

/// Threads that take a part in work on the host.
class HostWorkers {
 public:
  virtual ~HostWorkers() = default;
  /// Runs `item(0)` to `item(items - 1)`, each once, on the calling thread and on all that have
  /// nothing better to do; returns when all have ended. `item` must not throw.
  virtual void share(std::size_t items, const std::function<void(std::size_t)>& item) noexcept = 0;
};

/// One conversion (`Stream::launch`). All memory is the device's.
struct ConversionWork {
  static constexpr const char* kernel = "conversion";

  /// [samples, height, width, channels]
  const std::uint8_t* source = nullptr;
  /// In `layout`, of `dtype`.
  void* destination = nullptr;
  /// One per sample: the image is flipped horizontally if it is not 0. Null flips none.
  const std::uint8_t* flips = nullptr;
  std::size_t samples = 0;
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 0;
  DType dtype = DType::float32;
  ImageLayout layout = ImageLayout::nchw;
  std::array<float, Conversion::max_channels> mean{};
  std::array<float, Conversion::max_channels> std{};
  /// Who shares `run_on_host`; null = nobody. They outlive the work.
  HostWorkers* workers = nullptr;

  /// Does it in host memory: the reference for what devices do. Throws `Error`
  /// (`invalid_argument`) for a `dtype` or a number of channels that images cannot have.
  void run_on_host() const;
};

}  // namespace millrace
