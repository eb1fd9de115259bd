// SPDX-License-Identifier: Apache-2.0
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "cuda_check.h"
#include "cuda_perceptron.h"

namespace {

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(call) + " failed: " + cublasGetStatusString(status));
}
using ::check;

struct FreeOnDevice {
  void operator()(void* memory) const { cudaFree(memory); }
};
template <typename Element>
using Array = std::unique_ptr<Element[], FreeOnDevice>;

/// Allocates `count` zeros.
template <typename Element>
Array<Element> make_array(int count) {
  void* memory = nullptr;
  const std::size_t bytes = static_cast<std::size_t>(std::max(count, 1)) * sizeof(Element);
  check(cudaMalloc(&memory, bytes), "cudaMalloc");
  Array<Element> array(static_cast<Element*>(memory));
  check(cudaMemset(memory, 0, bytes), "cudaMemset");
  return array;
}

template <typename Function>
__global__ void for_each_index(int count, Function function) {
  const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (index < count) function(index);
}

/// The `Queue` of perceptron_on_device.h, on CUDA.
class CudaQueue {
 public:
  explicit CudaQueue(cudaStream_t stream)
      : stream_(stream), workspace_(make_array<char>(workspace_bytes)) {
    cublasHandle_t handle = nullptr;
    check(cublasCreate(&handle), "cublasCreate");
    cublas_.reset(handle);
    // This order is required: setting the stream removes the workspace. With a workspace of its own
    // cuBLAS does not allocate during a product. An allocation would end a capture, and graphs keep
    // the memory that they were captured with.
    check(cublasSetStream(handle, stream), "cublasSetStream");
    check(cublasSetWorkspace(handle, workspace_.get(), workspace_bytes), "cublasSetWorkspace");
  }

  void multiply(const Gemm& gemm) {
    const float one = 1;
    const auto operation = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
    check(cublasSgemm(cublas_.get(), operation(gemm.transpose_a), operation(gemm.transpose_b),
                      gemm.m, gemm.n, gemm.k, &one, gemm.a, gemm.lda, gemm.b, gemm.ldb, &gemm.beta,
                      gemm.c, gemm.ldc),
          "cublasSgemm");
  }

  template <typename Function>
  void each(int count, const Function& function) {
    constexpr int threads = 128;
    const auto blocks = static_cast<unsigned>((count + threads - 1) / threads);
    Function own = function;
    void* parameters[] = {&count, &own};
    check(cudaLaunchKernel(reinterpret_cast<const void*>(for_each_index<Function>), dim3(blocks),
                           dim3(threads), parameters, 0, stream_),
          "a kernel");
  }

  void zero(float* values, int count) {
    check(cudaMemsetAsync(values, 0, static_cast<std::size_t>(count) * sizeof(float), stream_),
          "cudaMemsetAsync");
  }

  cudaStream_t stream() const { return stream_; }

 private:
  struct Destroy {
    void operator()(cublasHandle_t handle) const { cublasDestroy(handle); }
  };
  static constexpr int workspace_bytes =
      32 << 20;  // as cuBLAS' documentation advises for Hopper; 4 MiB are enough for others

  cudaStream_t stream_;
  Array<char> workspace_;
  std::unique_ptr<std::remove_pointer_t<cublasHandle_t>, Destroy> cublas_;
};

}  // namespace

struct CudaPerceptron::OnDevice {
  OnDevice(const PerceptronShape& shape, int max_samples, cudaStream_t stream)
      : queue(stream),
        weights(make_array<float>(shape.weights())),
        momentum(make_array<float>(shape.weights())),
        gradients(make_array<float>(shape.weights())),
        hidden(make_array<float>(max_samples * shape.hidden)),
        hidden_gradient(make_array<float>(max_samples * shape.hidden)),
        output(make_array<float>(max_samples * shape.classes)),
        outcomes(make_array<float>(max_samples * sum_count)),
        sums(make_array<double>(sum_count)),
        model{.shape = shape,
              .weights = weights.get(),
              .momentum = momentum.get(),
              .gradients = gradients.get(),
              .hidden = hidden.get(),
              .hidden_gradient = hidden_gradient.get(),
              .output = output.get(),
              .outcomes = outcomes.get(),
              .sums = sums.get()} {}

  CudaQueue queue;
  Array<float> weights, momentum, gradients, hidden, hidden_gradient, output, outcomes;
  Array<double> sums;
  DevicePerceptron model;
};

CudaPerceptron::CudaPerceptron(const PerceptronShape& shape, int max_samples,
                               std::span<const float> weights, CUstream_st* stream)
    : on_device_(std::make_unique<OnDevice>(shape, max_samples, stream)) {
  check(cudaMemcpy(on_device_->model.weights, weights.data(), weights.size_bytes(),
                   cudaMemcpyHostToDevice),
        "cudaMemcpy");
  check(cudaDeviceSynchronize(),
        "cudaDeviceSynchronize");  // the zeros were not written on `stream`
}

CudaPerceptron::~CudaPerceptron() = default;

void CudaPerceptron::look(const DeviceSamples& samples) {
  ::look(on_device_->queue, on_device_->model, samples);
}

void CudaPerceptron::add_gradients(const DeviceSamples& samples, bool zero_first) {
  ::add_gradients(on_device_->queue, on_device_->model, samples, zero_first);
}

void CudaPerceptron::step(float scale, float rate) {
  ::step(on_device_->queue, on_device_->model, scale, rate);
}

std::array<double, sum_count> CudaPerceptron::take_sums() {
  std::array<double, sum_count> sums{};
  const cudaStream_t stream = on_device_->queue.stream();
  check(cudaMemcpyAsync(sums.data(), on_device_->model.sums, sizeof sums, cudaMemcpyDeviceToHost,
                        stream),
        "cudaMemcpyAsync");
  check(cudaMemsetAsync(on_device_->model.sums, 0, sizeof sums, stream), "cudaMemsetAsync");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return sums;
}
