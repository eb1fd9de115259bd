// SPDX-License-Identifier: Apache-2.0
#include <millrace/error.h>

#include <string>

#include "c/device.h"

namespace millrace::c {
namespace {

[[noreturn]] void refuse_cuda(int ordinal) {
  throw Error(ErrorCode::device,
              "cuda:" + std::to_string(ordinal) + ": this libmillrace was built without CUDA");
}

}  // namespace

std::shared_ptr<Device> open_cuda(int ordinal) { refuse_cuda(ordinal); }
std::shared_ptr<Stream> cuda_stream(int ordinal, std::uintptr_t /*stream*/) {
  refuse_cuda(ordinal);
}
std::uintptr_t number_of(const Stream& /*stream*/) { return 0; }

}  // namespace millrace::c
