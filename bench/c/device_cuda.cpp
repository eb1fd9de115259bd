// SPDX-License-Identifier: Apache-2.0
#include <millrace/cuda_device.h>

#include "c/device.h"

namespace millrace::c {

std::shared_ptr<Device> open_cuda(int ordinal) { return std::make_shared<CudaDevice>(ordinal); }

std::shared_ptr<Stream> cuda_stream(int ordinal, std::uintptr_t stream) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): DLPack also passes a stream as an integer
  return std::make_shared<CudaStream>(ordinal, reinterpret_cast<CUstream_st*>(stream));
}

std::uintptr_t number_of(const Stream& stream) {
  const auto* const cuda = dynamic_cast<const CudaStream*>(&stream);
  return cuda == nullptr ? 0 : reinterpret_cast<std::uintptr_t>(cuda->handle());
}

}  // namespace millrace::c
