// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/cuda_device.h>

#include <cstddef>
#include <memory>

namespace millrace::cli {

/// A real load for a GPU: the product of two square bfloat16 matrices by cuBLAS, which is opened
/// when the first one is made, so that programs start without it.
class MatrixProduct {
 public:
  /// Takes memory for three matrices of `size` x `size` and fills them; waits for the device.
  /// Throws `Error` (`device`) that names the library if it is missing or refuses. The stream
  /// outlives the product.
  MatrixProduct(CudaDevice& device, CudaStream& stream, std::size_t size);
  /// Waits for the stream, which works on the matrices.
  ~MatrixProduct();
  MatrixProduct(const MatrixProduct&) = delete;
  MatrixProduct& operator=(const MatrixProduct&) = delete;

  /// Enqueues it on the stream, or so many of its rows, with the stream's device being current.
  void enqueue(double share);

 private:
  class Library;
  std::unique_ptr<Library> library_;
  CudaStream& stream_;
  std::size_t size_;
  Memory left_;
  Memory right_;
  Memory product_;
};

}  // namespace millrace::cli
