// SPDX-License-Identifier: Apache-2.0
#include <millrace/torch.h>

int main() {
  return millrace::to_torch(millrace::DType::float16) == at::kHalf &&
                 millrace::TorchStream(at::kCPU).stream() == nullptr
             ? 0
             : 1;
}
