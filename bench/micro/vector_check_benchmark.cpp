// SPDX-License-Identifier: Apache-2.0
//
// Time of the self-checks that a process runs before its first image: under 1 ms in all.
#include <benchmark/benchmark.h>
#include <millrace/detail/vector_checks.h>

namespace millrace {
namespace {

void check(benchmark::State& state, const VectorCode& code) {
  for ([[maybe_unused]] auto _ : state)
    if (!code.is_right()) state.SkipWithError("the instruction set makes wrong pixels");
}

BENCHMARK_CAPTURE(check, jpeg_stages, jpeg::stages)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(check, resample_passes, resample_passes)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(check, pixel_passes, pixel_passes)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace millrace
