// SPDX-License-Identifier: Apache-2.0
//
// Cost of the pipeline itself per sample: an empty transform over records of 1 byte. "wall_ns" and
// "cpu_ns" (all threads of the process) are per sample; a benchmark's time is per batch.
#include <benchmark/benchmark.h>
#include <millrace/detail/worker_pool.h>
#include <millrace/host_device.h>
#include <millrace/pipeline.h>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <future>
#include <memory>

#include "micro/empty_samples.h"

namespace millrace {
namespace {

constexpr std::size_t scheduled_batch = 256;

/// Processor time of the process so far, in seconds.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Measures a loop that makes `samples` samples per round.
class PerSample {
 public:
  void report(benchmark::State& state, std::size_t samples) const {
    const std::chrono::duration<double, std::nano> wall = std::chrono::steady_clock::now() - wall_;
    const double all = static_cast<double>(state.iterations()) * static_cast<double>(samples);
    state.counters["wall_ns"] = wall.count() / all;
    state.counters["cpu_ns"] = 1e9 * (cpu_seconds() - cpu_) / all;
  }

 private:
  std::chrono::steady_clock::time_point wall_ = std::chrono::steady_clock::now();
  double cpu_ = cpu_seconds();
};

/// Runs a pipeline without copies, with `state.range(0)` workers.
void pipeline_of_empty_samples(benchmark::State& state) {
  const auto runtime = make_runtime({.workers = static_cast<unsigned>(state.range(0))});
  Pipeline pipeline(std::make_shared<OneByteDataset>(), std::make_shared<EmptyTransform>(),
                    std::make_shared<HostDevice>(),
                    {.batch_size = scheduled_batch, .runtime = runtime});
  for (int batch = 0; batch < 100; ++batch) pipeline.next();
  const PerSample measured;
  while (state.KeepRunning()) benchmark::DoNotOptimize(pipeline.next().size());
  measured.report(state, scheduled_batch);
}
BENCHMARK(pipeline_of_empty_samples)->Arg(1)->Arg(2)->UseRealTime()->MeasureProcessCPUTime();

/// Runs a pipeline whose samples take about 100 us of processor time each. Two workers should take
/// half the time of one.
void pipeline_of_busy_samples(benchmark::State& state) {
  const auto runtime = make_runtime({.workers = static_cast<unsigned>(state.range(0))});
  Pipeline pipeline(
      std::make_shared<OneByteDataset>(),
      std::make_shared<EmptyTransform>(SampleSpec({{"byte", DType::uint8, {1}, false}}), 100'000),
      std::make_shared<HostDevice>(), {.batch_size = scheduled_batch, .runtime = runtime});
  pipeline.next();
  const PerSample measured;
  while (state.KeepRunning()) benchmark::DoNotOptimize(pipeline.next().size());
  measured.report(state, scheduled_batch);
}
BENCHMARK(pipeline_of_busy_samples)->Arg(1)->Arg(2)->UseRealTime()->MeasureProcessCPUTime();

class EmptyItems final : public Job {
 public:
  std::size_t items() const override { return scheduled_batch; }
  void run(std::size_t item, unsigned) override {
    if (item + 1 == scheduled_batch) ended_.set_value();
  }
  void wait() { ended_.get_future().wait(); }

 private:
  std::promise<void> ended_;
};

/// Runs a worker pool alone, with one worker. The jobs have as many items as a batch and run one
/// after another.
void pool_of_empty_items(benchmark::State& state) {
  WorkerPool pool(0, 1, {});
  const PerSample measured;
  while (state.KeepRunning()) {
    const auto job = std::make_shared<EmptyItems>();
    pool.submit(&pool, job);
    job->wait();
  }
  measured.report(state, scheduled_batch);
  pool.cancel(&pool, std::chrono::seconds(1));
}
BENCHMARK(pool_of_empty_items)->UseRealTime()->MeasureProcessCPUTime();

/// Measures the cost of reading the clock, the minimal cost of measuring stages.
void clock_reading(benchmark::State& state) {
  while (state.KeepRunning()) benchmark::DoNotOptimize(std::chrono::steady_clock::now());
}
BENCHMARK(clock_reading);

}  // namespace
}  // namespace millrace
