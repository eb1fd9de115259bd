// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/dlpack_versioned.h>
#include <millrace/dlpack.h>

#include <array>
#include <memory>
#include <utility>

namespace millrace {
namespace {

// DLPack 1.0's code of booleans, which older headers do not define.
constexpr std::uint8_t bool_code = 6;

std::uint8_t code_of(DType dtype) {
  switch (dtype) {
    case DType::uint8:
    case DType::uint16:
    case DType::uint32:
    case DType::uint64:
      return kDLUInt;
    case DType::int8:
    case DType::int16:
    case DType::int32:
    case DType::int64:
      return kDLInt;
    case DType::float16:
    case DType::float32:
    case DType::float64:
      return kDLFloat;
    case DType::bfloat16:
      return kDLBfloat;
    case DType::boolean:
      return bool_code;
  }
  throw Error(ErrorCode::internal, "a dtype that DLPack has no code for");
}

/// A managed tensor with the data that it points to.
template <typename Managed>
struct Export {
  explicit Export(const BatchTensor& tensor) : batch(tensor.share()) {
    const std::size_t rank = tensor.shape.rank();
    std::int64_t stride = 1;
    for (std::size_t axis = rank; axis-- > 0;) {
      shape[axis] = static_cast<std::int64_t>(tensor.shape[axis]);
      strides[axis] = stride;
      stride *= shape[axis];
    }
    const DeviceId device = batch.device();
    managed.dl_tensor = {
        .data = tensor.data,
        .device = {device.kind == DeviceId::Kind::cuda ? kDLCUDA : kDLCPU, device.index},
        .ndim = static_cast<int>(rank),
        .dtype = {code_of(tensor.dtype), static_cast<std::uint8_t>(8 * size_of(tensor.dtype)), 1},
        .shape = shape.data(),
        .strides = strides.data(),
        .byte_offset = 0};
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { delete static_cast<Export*>(self->manager_ctx); };
  }

  Managed managed{};
  Batch batch;
  std::array<std::int64_t, Shape::max_rank + 1> shape{};
  std::array<std::int64_t, Shape::max_rank + 1> strides{};
};

}  // namespace

DLManagedTensor* to_dlpack(const BatchTensor& tensor) {
  return &std::make_unique<Export<DLManagedTensor>>(tensor).release()->managed;
}

DLManagedTensorVersioned* to_dlpack_versioned(const BatchTensor& tensor,
                                              const DlpackOptions& options) {
  auto made = std::make_unique<Export<DLManagedTensorVersioned>>(tensor);
  made->managed.version = {.major = 1, .minor = 0};
  made->managed.flags = options.read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  return &made.release()->managed;
}

}  // namespace millrace
