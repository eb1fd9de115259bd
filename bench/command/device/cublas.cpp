// SPDX-License-Identifier: Apache-2.0
#include "command/device/cublas.h"

#include <dlfcn.h>
#include <library_types.h>
#include <millrace/error.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <string>

#include "command/device/cuda_step.h"

namespace millrace::cli {
namespace {

// Types and values of cublas_api.h, equal in versions 12 and 13. cuBLAS's header may be missing
// although the header of the CUDA runtime is installed.
using Handle = void*;
using Status = int;
constexpr int not_transposed = 0;      // CUBLAS_OP_N
constexpr int compute_float32 = 68;    // CUBLAS_COMPUTE_32F
constexpr int default_algorithm = -1;  // CUBLAS_GEMM_DEFAULT

using Create = Status (*)(Handle*);
using Destroy = Status (*)(Handle);
using SetStream = Status (*)(Handle, cudaStream_t);
using GemmEx = Status (*)(Handle, int, int, int, int, int, const void*, const void*, cudaDataType,
                          int, const void*, cudaDataType, int, const void*, void*, cudaDataType,
                          int, int, int);

constexpr std::size_t element_bytes = 2;

void check_cublas(Status status, const char* call) {
  if (status != 0)
    throw Error(ErrorCode::device,
                std::string(call) + " failed: cuBLAS's status " + std::to_string(status));
}

}  // namespace

/// The loaded cuBLAS library with a handle.
class MatrixProduct::Library {
 public:
  explicit Library(cudaStream_t stream) {
    std::string tried;
    for (const char* name : cublas_libraries()) {
      // The library is never unloaded: loading takes seconds, and CUDA keeps references to its
      // kernels.
      library_.reset(dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE));
      if (library_ != nullptr) break;
      tried += (tried.empty() ? "" : ", ") + std::string(name);
    }
    if (library_ == nullptr)
      throw Error(
          ErrorCode::device,
          "a step of matrices (--step gemm:N) needs cuBLAS, and none of these can be opened: " +
              tried + "; install CUDA's libraries and name their folder in LD_LIBRARY_PATH");
    Create create = nullptr;
    SetStream set_stream = nullptr;
    find(create, "cublasCreate_v2");
    find(destroy_, "cublasDestroy_v2");
    find(set_stream, "cublasSetStream_v2");
    find(gemm_, "cublasGemmEx");
    check_cublas(create(&handle_), "cublasCreate");
    const Status status = set_stream(handle_, stream);
    if (status != 0) destroy_(handle_);
    check_cublas(status, "cublasSetStream");
  }
  ~Library() { destroy_(handle_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// product = left x right, with `size` columns and `rows` rows, in column-major order.
  void multiply(std::size_t rows, std::size_t size, const void* left, const void* right,
                void* product) const {
    constexpr float one = 1;
    constexpr float zero = 0;
    const int n = static_cast<int>(size);
    check_cublas(gemm_(handle_, not_transposed, not_transposed, static_cast<int>(rows), n, n, &one,
                       left, CUDA_R_16BF, n, right, CUDA_R_16BF, n, &zero, product, CUDA_R_16BF, n,
                       compute_float32, default_algorithm),
                 "cublasGemmEx");
  }

 private:
  struct Close {
    void operator()(void* library) const { dlclose(library); }
  };

  template <typename Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_.get(), name));
    if (function == nullptr)
      throw Error(ErrorCode::device, std::string("this cuBLAS has no function ") + name);
  }

  std::unique_ptr<void, Close> library_;
  Destroy destroy_ = nullptr;
  GemmEx gemm_ = nullptr;
  Handle handle_ = nullptr;
};

MatrixProduct::MatrixProduct(CudaDevice& device, CudaStream& stream, std::size_t size)
    : library_(std::make_unique<Library>(stream.handle())), stream_(stream), size_(size) {
  const std::size_t bytes = size * size * element_bytes;
  left_ = device.allocate_device(bytes);
  right_ = device.allocate_device(bytes);
  product_ = device.allocate_device(bytes);
  // The operands are random numbers of 1 to 2 with either sign: with zeros a GPU uses less power
  // and runs faster. A block that is repeated is sufficient.
  constexpr std::size_t most = std::size_t{32} << 20U;
  const std::size_t block = std::min(bytes, most);
  const Memory host = device.allocate_host(block, {});
  std::mt19937 random(1);
  for (std::uint16_t& number :
       std::span(reinterpret_cast<std::uint16_t*>(host.data()), block / element_bytes))
    number = static_cast<std::uint16_t>(0x3F80U | (random() & 0x807FU));
  for (const Memory* matrix : {&left_, &right_})
    for (std::size_t at = 0; at < bytes; at += block)
      stream.copy(matrix->data() + at, host.data(), std::min(block, bytes - at));
  enqueue(1);
  stream.synchronize();
}

MatrixProduct::~MatrixProduct() {
  try {
    stream_.synchronize();
  } catch (...) {
    // A failed device has no work left.
  }
}

void MatrixProduct::enqueue(double share) {
  const auto rows = static_cast<std::size_t>(std::llround(share * static_cast<double>(size_)));
  library_->multiply(std::clamp<std::size_t>(rows, 1, size_), size_, left_.data(), right_.data(),
                     product_.data());
}

}  // namespace millrace::cli
