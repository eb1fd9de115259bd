// SPDX-License-Identifier: Apache-2.0
//
// Time of a pipeline's start up to its first batch, and of its end. Host memory is either allocated
// for each pipeline or kept by the runtime. A GPU's driver pins memory; here the system locks it,
// which is faster. CPU times are those of all threads.
#include <benchmark/benchmark.h>
#include <millrace/host_device.h>
#include <millrace/pipeline.h>
#include <sys/mman.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "micro/empty_samples.h"

namespace millrace {
namespace {

/// The host device with locked memory.
class LockingDevice final : public Device {
 public:
  std::string name() const override { return "locking"; }
  bool copies() const override { return false; }
  bool host_memory_is_reusable() const override { return true; }
  Memory allocate_host(std::size_t bytes, const NumaNode& node) override {
    auto memory = std::make_shared<Memory>(host_.allocate_host(bytes, node));
    if (mlock(memory->data(), bytes) != 0)
      throw Error(ErrorCode::device, "locking: this process may not lock so much memory");
    return {memory->data(), bytes, [memory](std::byte* data) { munlock(data, memory->bytes()); }};
  }
  Memory allocate_device(std::size_t bytes) override { return host_.allocate_device(bytes); }
  std::unique_ptr<Stream> make_stream() override { return host_.make_stream(); }
  std::unique_ptr<Event> make_event() override { return host_.make_event(); }

 private:
  HostDevice host_;
};

void start_and_end(benchmark::State& state, std::shared_ptr<Device> device,
                   std::optional<std::size_t> kept_host_bytes) {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t side = 224;
  const auto dataset = std::make_shared<OneByteDataset>();
  const auto transform =
      std::make_shared<EmptyTransform>(SampleSpec({{"image", DType::uint8, {side, side, 3}}}));
  const PipelineOptions options{
      .batch_size = 256,
      .runtime = make_runtime({.workers = 1, .kept_host_bytes = kept_host_bytes})};
  using Milliseconds = std::chrono::duration<double, std::milli>;
  Milliseconds start{0};
  Milliseconds end{0};
  const auto run = [&] {
    const Clock::time_point begun = Clock::now();
    std::optional<Pipeline> pipeline(std::in_place, dataset, transform, device, options);
    benchmark::DoNotOptimize(pipeline->next().size());
    const Clock::time_point started = Clock::now();
    pipeline.reset();
    start += started - begun;
    end += Clock::now() - started;
  };
  try {
    run();  // warm-up: the system may have to free memory first
    start = end = Milliseconds(0);
    while (state.KeepRunning()) run();
  } catch (const Error& error) {
    return state.SkipWithError(error.what());
  }
  state.counters["start_ms"] = start.count() / static_cast<double>(state.iterations());
  state.counters["end_ms"] = end.count() / static_cast<double>(state.iterations());
}

BENCHMARK_CAPTURE(start_and_end, host_allocated, std::make_shared<HostDevice>(), 0)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK_CAPTURE(start_and_end, host_kept, std::make_shared<HostDevice>(), std::nullopt)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK_CAPTURE(start_and_end, locked_allocated, std::make_shared<LockingDevice>(), 0)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK_CAPTURE(start_and_end, locked_kept, std::make_shared<LockingDevice>(), std::nullopt)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

}  // namespace
}  // namespace millrace
