// SPDX-License-Identifier: Apache-2.0
//
// A library that the bench loads as cuBLAS, on the stand-in for CUDA. A product takes 2 ms; it must
// be of square bfloat16 matrices, or of some rows of one. Found only if LD_LIBRARY_PATH names its
// folder.
#include <library_types.h>

#include <chrono>
#include <thread>

#include "stand_in/stand_in_cuda.h"

namespace {

constexpr int success = 0;
constexpr int invalid_value = 7;
constexpr int float32_compute = 68;

struct Library {
  cudaStream_t stream = nullptr;
};

}  // namespace

extern "C" {

int cublasCreate_v2(void** handle) {
  *handle = new Library;
  return success;
}

int cublasDestroy_v2(void* handle) {
  delete static_cast<Library*>(handle);
  return success;
}

int cublasSetStream_v2(void* handle, cudaStream_t stream) {
  static_cast<Library*>(handle)->stream = stream;
  return success;
}

int cublasGemmEx(void* handle, int transpose_a, int transpose_b, int m, int n, int k,
                 const void* alpha, const void* a, cudaDataType a_type, int lda, const void* b,
                 cudaDataType b_type, int ldb, const void* beta, void* c, cudaDataType c_type,
                 int ldc, int compute, int algorithm) {
  const bool plain =
      transpose_a == 0 && transpose_b == 0 && *static_cast<const float*>(alpha) == 1 &&
      *static_cast<const float*>(beta) == 0 && compute == float32_compute && algorithm == -1;
  const bool square = k == n && m >= 1 && m <= n && lda == n && ldb == n && ldc == n;
  const bool typed = a_type == CUDA_R_16BF && b_type == CUDA_R_16BF && c_type == CUDA_R_16BF;
  if (!plain || !square || !typed || a == b || a == c || b == c) return invalid_value;
  millrace::testing::stand_in::launch(
      static_cast<Library*>(handle)->stream,
      [length = std::chrono::microseconds(2000 * m / n)] { std::this_thread::sleep_for(length); });
  return success;
}

}  // extern "C"
