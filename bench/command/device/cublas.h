// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/cuda_device.h>

#include <cstddef>
#include <memory>

namespace millrace::cli {

/// A real load for a GPU: the product of two square bfloat16 matrices by cuBLAS. The library is
/// loaded with the first object, so that programs start without it.
class MatrixProduct {
 public:
  /// Allocates and fills three matrices of `size` x `size`; waits for the device. Throws `Error`
  /// (`device`) with the library's name if it is missing or fails. The stream must outlive the
  /// object.
  MatrixProduct(CudaDevice& device, CudaStream& stream, std::size_t size);
  /// Waits for the stream, which uses the matrices.
  ~MatrixProduct();
  MatrixProduct(const MatrixProduct&) = delete;
  MatrixProduct& operator=(const MatrixProduct&) = delete;

  /// Enqueues the product, or this share of its rows, on the stream. The stream's device must be
  /// current.
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
