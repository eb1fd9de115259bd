// SPDX-License-Identifier: Apache-2.0
//
// Ranges that a profiler receives: this program acts as one, by NVTX's interface for tools that are
// linked in.
#include <gtest/gtest.h>
#include <millrace/cuda_device.h>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <cstdint>

/// NVTX looks for this symbol, the start function of a tool; without a tool it is NVTX's own
/// definition, which is null.
extern "C" int (*InitializeInjectionNvtx2_fnptr)(const void* (*export_table)(std::uint32_t id));
#define NVTX_STATIC_INJECTION_IMPL
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "stand_in/stand_in_cuda.h"

namespace millrace {
namespace {

/// Calls that the tool received, from all threads of the program.
struct Told {
  std::mutex mutex;
  /// Runs of other tests are not recorded.
  bool keeps_ranges = false;
  std::vector<std::string> domains;
  /// "begin NAME BATCH" and "end", by thread.
  std::vector<std::pair<std::thread::id, std::string>> ranges;

  void add(std::string what) {
    std::lock_guard lock(mutex);
    if (keeps_ranges) ranges.emplace_back(std::this_thread::get_id(), std::move(what));
  }
  void keep_ranges(bool keep) {
    std::lock_guard lock(mutex);
    keeps_ranges = keep;
    if (keep) ranges.clear();
  }
  std::vector<std::string> of(std::thread::id thread) {
    std::lock_guard lock(mutex);
    std::vector<std::string> result;
    for (const auto& [by, what] : ranges)
      if (by == thread) result.push_back(what);
    return result;
  }
};

Told& told() {
  static Told the_told;
  return the_told;
}

nvtxDomainHandle_t create_domain(const char* name) {
  static int some_domain = 0;
  std::lock_guard lock(told().mutex);
  told().domains.emplace_back(name);
  return reinterpret_cast<nvtxDomainHandle_t>(&some_domain);
}

int push_range(nvtxDomainHandle_t, const nvtxEventAttributes_t* range) {
  const bool has_batch = range->payloadType == NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  told().add(std::string("begin ") + range->message.ascii +
             (has_batch ? " " + std::to_string(range->payload.ullValue) : ""));
  return 0;
}

int pop_range(nvtxDomainHandle_t) {
  told().add("end");
  return 0;
}

int initialise(NvtxGetExportTableFunc_t export_table) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(export_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr) return 0;
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 0;
  const auto put = [&](unsigned id, auto* function) {
    *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
  };
  put(NVTX_CBID_CORE2_DomainCreateA, create_domain);
  put(NVTX_CBID_CORE2_DomainRangePushEx, push_range);
  put(NVTX_CBID_CORE2_DomainRangePop, pop_range);
  return 1;
}

TEST(NvtxRanges, TellNamesAndBatchesInPairs) {
  testing::stand_in::reset();
  CudaDevice device;
  ProfilerRanges* const profiler = device.profiler();
  ASSERT_NE(profiler, nullptr);
  EXPECT_GT(std::ranges::count(told().domains, "millrace"), 0);
  told().keep_ranges(true);
  std::thread::id other;
  profiler->begin("make", 7);
  profiler->begin("decode", 1ULL << 40U);
  std::thread([&] {
    other = std::this_thread::get_id();
    profiler->begin("upload", 8);
    profiler->end();
  }).join();
  profiler->end();
  profiler->end();
  told().keep_ranges(false);
  EXPECT_EQ(told().of(std::this_thread::get_id()),
            (std::vector<std::string>{"begin make 7", "begin decode 1099511627776", "end", "end"}));
  EXPECT_EQ(told().of(other), (std::vector<std::string>{"begin upload 8", "end"}));
}

}  // namespace
}  // namespace millrace

int (*InitializeInjectionNvtx2_fnptr)(const void* (*)(std::uint32_t)) = millrace::initialise;
#endif
