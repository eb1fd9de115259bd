// SPDX-License-Identifier: Apache-2.0
//
//   millrace_gpu_benchmarks [--small] [--photos FOLDER] [--benchmark_filter=...]
//
// The program needs a GPU; without a GPU it prints a message and exits with 77. With --small, every
// benchmark runs on few samples: for tests, or to run under a sanitizer. The crops are made of the
// JPEGs in FOLDER.
#include <cstdio>
#include <cstring>
#include <exception>

#include "micro/crop_batch.h"
#include "micro/gpu_benchmark.h"

namespace {

using namespace millrace;

constexpr int no_device = 77;

/// Removes --small from the arguments; returns the number of arguments left.
int take_small(int argc, char** argv) {
  char** const end = std::remove_if(argv, argv + argc, [](const char* argument) {
    return std::strcmp(argument, "--small") == 0;
  });
  if (end != argv + argc) micro::gpu_scale() = micro::small_scale;
  return static_cast<int>(end - argv);
}

/// Removes --photos and its folder; returns the number of arguments left.
int take_photos(int argc, char** argv) {
  char** const end = argv + argc;
  char** const at = std::find_if(
      argv, end, [](const char* argument) { return std::strcmp(argument, "--photos") == 0; });
  if (end - at < 2) return argc;
  micro::photographs_folder() = at[1];
  std::copy(at + 2, end, at);
  return argc - 2;
}

}  // namespace

int main(int argc, char** argv) try {
  argc = take_photos(take_small(argc, argv), argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  try {
    const CudaDevice device;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return no_device;
  }
  micro::register_conversions();
  micro::register_mixes();
  micro::register_crops();
  micro::register_pinned_allocations();
  micro::register_launches();
  benchmark::RunSpecifiedBenchmarks();
  return micro::all_right() ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "millrace_gpu_benchmarks: %s\n", error.what());
  return 1;
}
