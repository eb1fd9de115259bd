// SPDX-License-Identifier: Apache-2.0
// The kernel that converts a batch's images. Pipelines launch it on a stream. It is for code that
// implements `Device`; trainers set `PipelineOptions::conversion` instead.
//
// Threads: `run_on_host` may be called on any thread, `HostWorkers::share` on several at once.
// Lifetimes: the memory that a `ConversionWork` points to must stay valid until the work is done.
#pragma once

#include <millrace/conversion.h>
#include <millrace/detail/export.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace MILLRACE_API millrace {

/// Threads that help with work on the host.
class HostWorkers {
 public:
  virtual ~HostWorkers() = default;
  /// Runs `item(0)` to `item(items - 1)`, each once, on the calling thread and on all idle workers.
  /// Returns when all items are done. `item` must not throw.
  virtual void share(std::size_t items, const std::function<void(std::size_t)>& item) noexcept = 0;
};

/// Arguments of one conversion (`Stream::launch`). All memory is the device's.
struct ConversionWork {
  static constexpr const char* kernel = "conversion";

  /// [samples, height, width, channels]
  const std::uint8_t* source = nullptr;
  /// Memory of the result, in `layout` and of `dtype`.
  void* destination = nullptr;
  /// One value per sample: if it is not 0, the sample's image is flipped horizontally. Null = no
  /// flips.
  const std::uint8_t* flips = nullptr;
  std::size_t samples = 0;
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 0;
  DType dtype = DType::float32;
  ImageLayout layout = ImageLayout::nchw;
  std::array<float, Conversion::max_channels> mean{};
  std::array<float, Conversion::max_channels> std{};
  /// Threads that help with `run_on_host`; null = the calling thread works alone. They must outlive
  /// the work.
  HostWorkers* workers = nullptr;

  /// Converts in host memory: the reference for all devices. Throws `Error` (`invalid_argument`)
  /// for a `dtype` or a number of channels that images cannot have.
  void run_on_host() const;
};

}  // namespace millrace
