// SPDX-License-Identifier: Apache-2.0
// Converts fields of a batch to LibTorch tensors without a copy. Header only. The target
// `millrace::torch` exists if `find_package(Torch)` was called before `find_package(millrace)`.
//
//     const millrace::TorchStream stream(device);     // the current stream of an at::Device
//     while (auto batch = stream.next(pipeline)) {
//       auto images = millrace::to_torch_channels_last(batch["image"]);
//       ...
//     }
//
// Streams: PyTorch enqueues its work on the calling thread's current CUDA stream. `next` makes the
// `TorchStream`'s stream wait for the batch's data. The slot is refilled only when that stream has
// finished all work that was enqueued before the batch and its tensors were destroyed. To use a
// tensor on another stream, make that stream wait for this one and call `to_torch(field, other)`.
// PyTorch's own `record_stream` does not work for memory that PyTorch did not allocate. Host memory
// needs no streams.
//
// Threads: a tensor may be made and destroyed on any thread.
// Lifetimes: a tensor holds a share of its batch, and so its slot, until its storage is freed. It
// may outlive the `Batch`, the pipeline, the runtime and any `TorchStream`: batches keep the
// underlying streams.
#pragma once

#include <ATen/ATen.h>
#include <millrace/batch.h>
#include <millrace/pipeline.h>
#include <torch/version.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#ifdef MILLRACE_TORCH_CUDA
#include <c10/cuda/CUDAStream.h>
#include <millrace/cuda_device.h>
#endif

namespace millrace {

/// Stream on which batches are taken and PyTorch uses tensors. Empty for host memory.
class TorchStream {
 public:
  /// Makes an empty stream, for host memory. Batches are then ready when they are handed out.
  TorchStream() = default;

  /// Uses the calling thread's current stream of a CUDA device, or host memory for the CPU. Throws
  /// `Error` (`invalid_argument`) for another kind of device. Also throws it for a CUDA device if
  /// millrace or LibTorch was built without CUDA.
  explicit TorchStream(const at::Device& device) {
    if (device.is_cpu()) return;
#ifdef MILLRACE_TORCH_CUDA
    if (device.is_cuda()) {
      *this = TorchStream(c10::cuda::getCurrentCUDAStream(device.index()));
      return;
    }
#endif
#ifdef MILLRACE_TORCH_CUDA
    constexpr const char* supported = "cpu and cuda";
#else
    constexpr const char* supported = "cpu";
#endif
    throw Error(ErrorCode::invalid_argument,
                "torch device \"" + device.str() +
                    "\" is not supported; with this build of millrace and LibTorch, batches can be "
                    "on: " +
                    supported);
  }

  /// Uses a stream of millrace, which must be on the device of the batches.
  explicit TorchStream(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}

#ifdef MILLRACE_TORCH_CUDA
  /// Uses a stream of PyTorch. Throws `Error` (`invalid_argument`) if it is an external stream that
  /// is cudaStreamPerThread.
  explicit TorchStream(const c10::cuda::CUDAStream& stream)
      : stream_(std::make_shared<CudaStream>(stream.device_index(), stream.stream())) {}
#endif

  /// Calls `Pipeline::next` for this stream. The batch keeps the stream alive. Throws the errors of
  /// `Pipeline::next`. Throws `Error` (`invalid_argument`), without taking a batch, if the batches
  /// are on a GPU and this stream is empty.
  Batch next(Pipeline& pipeline, NextRequest request = {}) const {
    if (stream_ == nullptr && pipeline.device().kind == DeviceId::Kind::cuda)
      throw Error(ErrorCode::invalid_argument,
                  "a batch on a GPU was taken on the TorchStream of the CPU; take it on "
                  "TorchStream(device)");
    request.stream = stream_.get();
    Batch batch = pipeline.next(request);
    if (batch && stream_ != nullptr) batch.record_stream(stream_);
    return batch;
  }

  /// Null for host memory.
  const std::shared_ptr<Stream>& stream() const { return stream_; }

 private:
  std::shared_ptr<Stream> stream_;
};

/// Returns PyTorch's type for the same elements. Throws `Error` (`invalid_argument`) for types that
/// this LibTorch does not have: uint16, uint32 and uint64 exist since 2.3.
inline at::ScalarType to_torch(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return at::kBool;
    case DType::uint8:
      return at::kByte;
    case DType::int8:
      return at::kChar;
    case DType::int16:
      return at::kShort;
    case DType::int32:
      return at::kInt;
    case DType::int64:
      return at::kLong;
    case DType::float16:
      return at::kHalf;
    case DType::bfloat16:
      return at::kBFloat16;
    case DType::float32:
      return at::kFloat;
    case DType::float64:
      return at::kDouble;
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
    case DType::uint16:
      return at::kUInt16;
    case DType::uint32:
      return at::kUInt32;
    case DType::uint64:
      return at::kUInt64;
#else
    case DType::uint16:
    case DType::uint32:
    case DType::uint64:
      break;
#endif
  }
  throw Error(ErrorCode::invalid_argument,
              std::string("this LibTorch has no type for ") + to_string(dtype));
}

namespace torch_detail {

inline at::Tensor view(const BatchTensor& tensor, const std::vector<std::int64_t>& sizes,
                       const std::vector<std::int64_t>& strides) {
  const at::ScalarType type = to_torch(tensor.dtype);
  auto share = std::make_shared<Batch>(tensor.share());
  const DeviceId id = share->device();
#ifndef MILLRACE_TORCH_CUDA
  if (id.kind == DeviceId::Kind::cuda)
    throw Error(ErrorCode::invalid_argument,
                "a batch on a GPU, but millrace or LibTorch was built without CUDA");
#endif
  const at::Device device = id.kind == DeviceId::Kind::cuda
                                ? at::Device(at::kCUDA, static_cast<at::DeviceIndex>(id.index))
                                : at::Device(at::kCPU);
  return at::from_blob(
      tensor.data, sizes, strides, [share](void*) mutable { share.reset(); },
      at::TensorOptions().dtype(type).device(device), device);
}

inline std::vector<std::int64_t> extents_of(const BatchTensor& tensor) {
  std::vector<std::int64_t> extents;
  for (const std::size_t extent : tensor.shape.extents())
    extents.push_back(static_cast<std::int64_t>(extent));
  return extents;
}

inline std::vector<std::int64_t> row_major(const std::vector<std::int64_t>& extents) {
  std::vector<std::int64_t> strides(extents.size(), 1);
  for (std::size_t axis = extents.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * extents[axis];
  return strides;
}

}  // namespace torch_detail

/// Returns the field as a contiguous tensor of the same shape, on the CPU or the GPU of its batch.
/// The tensor uses the batch's own memory. Its data is ready for the stream on which the batch was
/// taken. Throws `Error` (`invalid_argument`) if LibTorch lacks the dtype or the device.
inline at::Tensor to_torch(const BatchTensor& tensor) {
  const std::vector<std::int64_t> extents = torch_detail::extents_of(tensor);
  return torch_detail::view(tensor, extents, torch_detail::row_major(extents));
}

/// Returns a field [samples, height, width, channels] as PyTorch's [samples, channels, height,
/// width] with channels-last strides, which convolutions accept directly. Throws like `to_torch`,
/// and for a field of another rank.
inline at::Tensor to_torch_channels_last(const BatchTensor& tensor) {
  if (tensor.shape.rank() != 4)
    throw Error(ErrorCode::invalid_argument,
                "a field " + tensor.shape.to_string() +
                    " is not a batch of images [samples, height, width, channels]");
  const std::vector<std::int64_t> nhwc = torch_detail::extents_of(tensor);
  const std::vector<std::int64_t> strides = torch_detail::row_major(nhwc);
  return torch_detail::view(tensor, {nhwc[0], nhwc[3], nhwc[1], nhwc[2]},
                            {strides[0], strides[3], strides[1], strides[2]});
}

/// Does the same for use on one more stream, `stream`, which the batch keeps alive. Also throws
/// `Error` (`invalid_argument`) while `stream` is being captured.
inline at::Tensor to_torch(const BatchTensor& tensor, const TorchStream& stream) {
  if (stream.stream() != nullptr) tensor.share().record_stream(stream.stream());
  return to_torch(tensor);
}
inline at::Tensor to_torch_channels_last(const BatchTensor& tensor, const TorchStream& stream) {
  if (stream.stream() != nullptr) tensor.share().record_stream(stream.stream());
  return to_torch_channels_last(tensor);
}

}  // namespace millrace
