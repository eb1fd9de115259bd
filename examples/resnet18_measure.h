// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/pipeline.h>
#include <millrace/torch.h>
#include <torch/torch.h>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iomanip>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>

#include "resnet18_step.h"
#ifdef MILLRACE_TORCH_CUDA
#include "stream_clock.h"
#endif

// Measures the rate of training steps on millrace's batches, and on batches that stay on the device
// and so need no loading. With a fast enough loader both rates are the same.

/// Times steps on the device's current stream. On a GPU it uses events on the stream.
class StepClock {
 public:
  explicit StepClock(const torch::Device& device) {
#ifdef MILLRACE_TORCH_CUDA
    if (device.is_cuda()) events_.emplace(c10::cuda::getCurrentCUDAStream(device.index()).stream());
#endif
    (void)device;
  }

  void begin() {
#ifdef MILLRACE_TORCH_CUDA
    if (events_) return events_->begin();
#endif
    if (!begin_) begin_ = std::chrono::steady_clock::now();
  }
  void end() {
#ifdef MILLRACE_TORCH_CUDA
    if (events_) return events_->end();
#endif
    end_ = std::chrono::steady_clock::now();
  }

  /// Valid after the device has finished the steps.
  double seconds() {
#ifdef MILLRACE_TORCH_CUDA
    if (events_) return events_->seconds();
#endif
    return begin_ ? std::chrono::duration<double>(end_ - *begin_).count() : 0;
  }
  /// Share of this time in which the stream had no step to run; nullopt on the CPU.
  std::optional<double> idle() {
#ifdef MILLRACE_TORCH_CUDA
    if (events_) return events_->idle();
#endif
    return std::nullopt;
  }

 private:
#ifdef MILLRACE_TORCH_CUDA
  std::optional<StreamClock> events_;
#endif
  std::optional<std::chrono::steady_clock::time_point> begin_;
  std::chrono::steady_clock::time_point end_;
};

struct MeasureOptions {
  double seconds = 8;
  double warm_up = 3;  ///< seconds of steps before the measurement; at least 10 steps
  std::string json{};  ///< file to append a line of JSON to for each rate
};

struct Rate {
  std::string feed;  ///< "millrace" or "synthetic"
  std::uint64_t images = 0;
  double seconds = 0;
  std::optional<double> idle{};
  double loss = 0;
  std::optional<millrace::Report> report{};  ///< report of the pipeline; unset without one

  double images_per_second() const {
    return seconds > 0 ? static_cast<double>(images) / seconds : 0;
  }
};

inline std::string name_of(const torch::Device& device) {
#ifdef MILLRACE_TORCH_CUDA
  if (device.is_cuda()) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device.has_index() ? device.index() : 0),
          "cudaGetDeviceProperties");
    return properties.name;
  }
#endif
  return device.str();
}

/// Runs `step`, which returns its loss, for the times of `options`. Calls `restart` at the end of
/// the warm-up. `next` returns the next tensors.
template <typename Next, typename Step, typename Restart>
Rate measure_steps(const torch::Device& device, const MeasureOptions& options, const Next& next,
                   const Step& step, const Restart& restart) {
  using Clock = std::chrono::steady_clock;
  const auto until = [](double seconds) {
    return Clock::now() +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  };
  auto end = until(options.warm_up);
  for (int steps = 0; steps < 10 || Clock::now() < end; ++steps) step(next());
  restart();
  Rate rate;
  StepClock clock(device);
  torch::Tensor loss;
  end = until(options.seconds);
  do {
    const auto tensors = next();
    clock.begin();
    loss = step(tensors);
    clock.end();
    rate.images += static_cast<std::uint64_t>(tensors.labels.size(0));
  } while (Clock::now() < end);
  rate.loss = loss.template item<double>();  // waits for the device
  rate.seconds = clock.seconds();
  rate.idle = clock.idle();
  return rate;
}

inline std::string to_json(const Rate& rate, const torch::Device& device, std::size_t batch_size,
                           std::size_t pixels) {
  std::ostringstream json;
  json << R"({"program": "resnet18", "feed": )" << std::quoted(rate.feed) << R"(, "device": )"
       << std::quoted(device.str()) << R"(, "device_name": )" << std::quoted(name_of(device))
       << R"(, "torch": )" << std::quoted(TORCH_VERSION) << R"(, "dtype": ")"
       << (device.is_cuda() ? "bfloat16" : "float32") << R"(", "batch_size": )" << batch_size
       << R"(, "pixels": )" << pixels << R"(, "workers": )"
       << (rate.report ? rate.report->workers : 0) << R"(, "images": )" << rate.images
       << R"(, "seconds": )" << rate.seconds << R"(, "images_per_second": )"
       << rate.images_per_second() << R"(, "idle": )";
  if (rate.idle)
    json << *rate.idle;
  else
    json << "null";
  json << R"(, "loss": )";
  if (std::isfinite(rate.loss))
    json << rate.loss;
  else
    json << "null";
  json << R"(, "stall_seconds": )";
  if (rate.report)
    json << rate.report->stall.total_ms / 1000;
  else
    json << "null";
  json << R"(, "verdict": )";
  if (rate.report)
    json << std::quoted(millrace::judge(*rate.report, rate.idle).text);
  else
    json << "null";
  json << "}";
  return json.str();
}

/// Prints the rate, and appends it to the file of `options`.
inline void print_rate(const Rate& rate, const MeasureOptions& options, const std::string& json) {
  std::printf("%s: %.1f images/s", rate.feed.c_str(), rate.images_per_second());
  if (rate.idle) std::printf(", idle %.2f%%", 100 * *rate.idle);
  std::printf(", %llu images in %.1f s, loss %.4f\n", static_cast<unsigned long long>(rate.images),
              rate.seconds, rate.loss);
  if (rate.report) std::printf("%s\n", millrace::judge(*rate.report, rate.idle).text.c_str());
  if (std::fflush(stdout) != 0) throw std::runtime_error("standard output cannot be written");
  if (options.json.empty()) return;
  std::ofstream file(options.json, std::ios::app);
  file << json << '\n';
  if (!file.flush()) throw std::runtime_error(options.json + " cannot be written");
}
