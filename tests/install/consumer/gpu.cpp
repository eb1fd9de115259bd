// SPDX-License-Identifier: Apache-2.0
#include <millrace/cuda_device.h>
#include <millrace/error.h>

#include <iostream>
#include <string_view>

// Runs with and without a GPU, because CUDA's runtime is linked statically.
int main() {
  try {
    return millrace::CudaDevice().name() == "cuda:0" ? 0 : 1;
  } catch (const millrace::Error& error) {
    std::cout << error.what() << '\n';
    return std::string_view(error.what()).starts_with("no CUDA device") ? 0 : 1;
  }
}
