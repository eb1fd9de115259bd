// SPDX-License-Identifier: Apache-2.0
#include <millrace/tensor.h>

#include <algorithm>

namespace millrace {

std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::uint8:
      return 1;
    case DType::float16:
    case DType::bfloat16:
      return 2;
    case DType::int32:
    case DType::uint32:
    case DType::float32:
      return 4;
    case DType::int64:
    case DType::uint64:
    case DType::float64:
      return 8;
  }
  throw Error(ErrorCode::invalid_argument,
              "unknown dtype " + std::to_string(static_cast<int>(dtype)));
}

const char* to_string(DType dtype) {
  switch (dtype) {
    case DType::uint8:
      return "uint8";
    case DType::int32:
      return "int32";
    case DType::uint32:
      return "uint32";
    case DType::int64:
      return "int64";
    case DType::uint64:
      return "uint64";
    case DType::float32:
      return "float32";
    case DType::float64:
      return "float64";
    case DType::float16:
      return "float16";
    case DType::bfloat16:
      return "bfloat16";
  }
  return "unknown";
}

Shape::Shape(std::initializer_list<std::size_t> extents) {
  if (extents.size() > max_rank)
    throw Error(ErrorCode::invalid_argument, "a shape of " + std::to_string(extents.size()) +
                                                 " extents: at most " + std::to_string(max_rank) +
                                                 " are possible");
  std::copy(extents.begin(), extents.end(), extents_.begin());
  rank_ = extents.size();
}

std::size_t Shape::elements() const {
  std::size_t product = 1;
  for (const std::size_t extent : extents()) product *= extent;
  return product;
}

Shape Shape::with_outer(std::size_t extent) const {
  if (rank_ == max_rank)
    throw Error(ErrorCode::invalid_argument,
                "the shape " + to_string() + " has no room for one more extent");
  Shape result;
  result.rank_ = rank_ + 1;
  result.extents_[0] = extent;
  for (std::size_t axis = 0; axis < rank_; ++axis) result.extents_[axis + 1] = extents_[axis];
  return result;
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (std::size_t axis = 0; axis < rank_; ++axis)
    text += (axis > 0 ? ", " : "") + std::to_string(extents_[axis]);
  return text + "]";
}

void Tensor::throw_other_dtype(DType asked) const {
  throw Error(ErrorCode::invalid_argument, std::string("a tensor of ") + to_string(dtype) +
                                               " was asked for as " + to_string(asked));
}

}  // namespace millrace
