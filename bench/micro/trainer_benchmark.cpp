// SPDX-License-Identifier: Apache-2.0
//
// Cost of the loader on the trainer's thread: its processor time to take and release a batch,
// without the command. "us" is the median in microseconds; "switches" is the mean number of sleeps
// for a batch.
#include <benchmark/benchmark.h>
#include <millrace/host_device.h>
#include <millrace/pipeline.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <memory>
#include <thread>
#include <vector>

#include "micro/empty_samples.h"

namespace millrace {
namespace {

constexpr std::size_t taken_batch = 32;
/// Turns of the loop per sample: about 20 us of processor time.
constexpr std::uint64_t turns = 20'000;

double thread_us() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e6 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_nsec);
}

long switches() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

/// Takes and releases batches of a device, which copies them if `copies` is set. With `ready`,
/// takes the next batch only when it is made; else waits in `next` for each batch.
void trainer_thread(benchmark::State& state, bool copies, bool ready) {
  const auto device = std::make_shared<HostDevice>(HostDeviceOptions{.copies = copies});
  Pipeline pipeline(
      std::make_shared<OneByteDataset>(),
      std::make_shared<EmptyTransform>(SampleSpec({{"byte", DType::uint8, {1}, false}}), turns),
      device, {.batch_size = taken_batch, .runtime = make_runtime({.workers = 1})});
  HostStream stream;
  const auto next = [&] { return copies ? pipeline.next(stream) : pipeline.next(); };
  for (int batch = 0; batch < 10; ++batch) next();
  std::vector<double> all;
  double nothing = thread_us();  // cost of reading the thread's clock
  nothing = thread_us() - nothing;
  long slept = 0;
  while (state.KeepRunning()) {
    if (ready) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    const long before = switches();
    const double begin = thread_us();
    benchmark::DoNotOptimize(next().size());
    all.push_back(thread_us() - begin - nothing);
    slept += switches() - before;
  }
  std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2));
  state.counters["us"] = all[all.size() / 2];
  state.counters["switches"] = static_cast<double>(slept) / static_cast<double>(all.size());
}
BENCHMARK_CAPTURE(trainer_thread, in_place_waits, false, false)->UseRealTime();
BENCHMARK_CAPTURE(trainer_thread, in_place_ready, false, true)->UseRealTime();
BENCHMARK_CAPTURE(trainer_thread, copies_waits, true, false)->UseRealTime();
BENCHMARK_CAPTURE(trainer_thread, copies_ready, true, true)->UseRealTime();

}  // namespace
}  // namespace millrace
