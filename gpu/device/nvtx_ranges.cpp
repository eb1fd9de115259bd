// SPDX-License-Identifier: Apache-2.0
#include "device/nvtx_ranges.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

#include <mutex>
#define MILLRACE_HAS_NVTX 1
#endif

namespace millrace {

#ifdef MILLRACE_HAS_NVTX
namespace {

/// NVTX's functions return at once unless a tool has installed its own. Names are passed as texts:
/// registering them would need a table that all threads share.
class NvtxRanges final : public ProfilerRanges {
 public:
  NvtxRanges() : domain_(nvtxDomainCreateA("millrace")) {}
  ~NvtxRanges() override { nvtxDomainDestroy(domain_); }
  NvtxRanges(const NvtxRanges&) = delete;
  NvtxRanges& operator=(const NvtxRanges&) = delete;

  void begin(const char* name, std::uint64_t batch) noexcept override {
    nvtxEventAttributes_t range{};
    range.version = NVTX_VERSION;
    range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    range.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    range.payload.ullValue = batch;
    range.messageType = NVTX_MESSAGE_TYPE_ASCII;
    range.message.ascii = name;
    nvtxDomainRangePushEx(domain_, &range);
  }
  void end() noexcept override { nvtxDomainRangePop(domain_); }

 private:
  nvtxDomainHandle_t domain_;
};

}  // namespace

std::unique_ptr<ProfilerRanges> make_nvtx_ranges() {
  // NVTX initialises its functions in its first call, which two threads must not make at once.
  static std::mutex first_call;
  const std::lock_guard lock(first_call);
  return std::make_unique<NvtxRanges>();
}
#else
std::unique_ptr<ProfilerRanges> make_nvtx_ranges() { return nullptr; }
#endif

}  // namespace millrace
