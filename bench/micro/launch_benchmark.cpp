// SPDX-License-Identifier: Apache-2.0
//
// Time that another thread needs for a launch while slots are freed after a long-running kernel.
// The driver may block all threads meanwhile. Counters: percentiles of single launches of an empty
// kernel, in microseconds, while that kernel runs.
#include <millrace/pipeline.h>
#include <millrace/runtime.h>

#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "command/device/cuda_step.h"
#include "micro/empty_samples.h"
#include "micro/gpu_benchmark.h"

namespace millrace::micro {
namespace {

using Clock = std::chrono::steady_clock;

/// A thread that launches kernels on its own stream, several in succession, and times each launch.
class Launcher {
 public:
  /// Starts the thread. Returns after the warm-up launches.
  Launcher() : thread_([this](const std::stop_token& stop) { run(stop); }) {
    ready_.wait(false, std::memory_order_acquire);
  }

  /// Ends the thread; returns the launches' times in microseconds.
  std::vector<double> finish() {
    thread_.request_stop();
    thread_.join();
    check(status_);
    return std::move(all_us_);
  }

 private:
  void run(const std::stop_token& stop) {
    constexpr std::chrono::milliseconds pause{1};
    status_ = cudaSetDevice(0);
    if (status_ == cudaSuccess) launch_some();
    all_us_.clear();
    ready_.store(true, std::memory_order_release);
    ready_.notify_one();
    do {
      launch_some();
      std::this_thread::sleep_for(pause);
    } while (status_ == cudaSuccess && !stop.stop_requested());
  }

  void launch_some() {
    constexpr int in_a_row = 4;  // few enough that a stream queues all without blocking the thread
    for (int launch = 0; launch < in_a_row && status_ == cudaSuccess; ++launch) {
      const Clock::time_point begin = Clock::now();
      status_ = cli::launch_step(0, stream_.handle());
      all_us_.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    }
  }

  CudaStream stream_{0};
  std::vector<double> all_us_;
  cudaError_t status_ = cudaSuccess;
  std::atomic<bool> ready_{false};  // signals only the warm-up: no data depends on it
  std::jthread thread_;
};

enum class Freed { nothing, memory, pipeline };

constexpr std::size_t slot_samples = 64;
constexpr std::size_t slot_side = 224;

/// Returns memory of the size of slots, on host and device.
std::vector<Memory> slot_memory(CudaDevice& device) {
  const std::size_t samples = std::min(slot_samples, gpu_scale().max_samples);
  std::vector<Memory> slots;
  for (int slot = 0; slot < 4; ++slot) {
    slots.push_back(device.allocate_host(samples * slot_side * slot_side * 3, {}));
    slots.push_back(device.allocate_device(samples * slot_side * slot_side * 3));
  }
  return slots;
}

Pipeline image_pipeline(const std::shared_ptr<CudaDevice>& device,
                        const std::shared_ptr<Runtime>& runtime) {
  const SampleSpec spec({{"image", DType::uint8, {slot_side, slot_side, 3}, false}});
  return Pipeline(
      std::make_shared<OneByteDataset>(), std::make_shared<EmptyTransform>(spec), device,
      {.batch_size = std::min(slot_samples, gpu_scale().max_samples), .runtime = runtime});
}

/// Times launches during one kernel. After the kernel, `freed` is freed.
std::vector<double> launches_beside(Freed freed, const std::shared_ptr<CudaDevice>& device,
                                    const std::shared_ptr<Runtime>& runtime, CudaStream& trainer) {
  const auto block = [&] {
    const std::chrono::nanoseconds duration = gpu_scale().blocking_kernel;
    check(cli::launch_step(static_cast<std::uint64_t>(duration.count()), trainer.handle()));
  };
  std::vector<Memory> slots;
  std::optional<Pipeline> pipeline;
  Batch batch;
  if (freed == Freed::memory) slots = slot_memory(*device);
  if (freed == Freed::pipeline) {
    pipeline.emplace(image_pipeline(device, runtime));
    batch = pipeline->next(trainer);
  }
  trainer.synchronize();
  Launcher launcher;
  block();
  const Clock::time_point begin = Clock::now();
  batch.reset();
  pipeline.reset();
  slots.clear();
  std::this_thread::sleep_until(begin + gpu_scale().blocking_kernel);
  std::vector<double> all_us = launcher.finish();
  trainer.synchronize();
  return all_us;
}

void time_launches(benchmark::State& state, Freed freed) {
  const auto device = std::make_shared<CudaDevice>();
  // The runtime outlives pipelines, as in a trainer between two evaluations.
  const auto runtime = make_runtime({.workers = 1});
  device->prepare_thread();
  CudaStream trainer(0);
  check(cli::launch_step(0, trainer.handle()));  // loads the kernel, which may block
  trainer.synchronize();
  std::vector<double> all_us;
  for ([[maybe_unused]] auto _ : state) {
    const std::vector<double> more = launches_beside(freed, device, runtime, trainer);
    all_us.insert(all_us.end(), more.begin(), more.end());
    state.SetIterationTime(std::chrono::duration<double>(gpu_scale().blocking_kernel).count());
  }
  std::ranges::sort(all_us);
  state.counters["p50_us"] = all_us[all_us.size() / 2];
  state.counters["p99_us"] = all_us[all_us.size() * 99 / 100];
  state.counters["max_us"] = all_us.back();
  state.counters["launches"] = static_cast<double>(all_us.size());
}

}  // namespace

void register_launches() {
  for (const auto& [freed, name] :
       {std::pair(Freed::nothing, "nothing_freed"), std::pair(Freed::memory, "memory_freed"),
        std::pair(Freed::pipeline, "pipeline_ended")})
    benchmark::RegisterBenchmark((std::string("LaunchLatency/") + name).c_str(), time_launches,
                                 freed)
        ->UseManualTime()
        ->Iterations(gpu_scale().launch_rounds)
        ->Unit(benchmark::kMillisecond);
}

}  // namespace millrace::micro
