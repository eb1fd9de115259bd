// SPDX-License-Identifier: Apache-2.0
#include <millrace/tensor.h>

#include <algorithm>
#include <iterator>

namespace millrace {

namespace {

struct DTypeFacts {
  const char* name;
  std::size_t bytes;
};

/// Properties of a dtype; null for an invalid one.
const DTypeFacts* facts_of(DType dtype) {
  // In the order of `DType`.
  static constexpr DTypeFacts facts[] = {
      {"uint8", 1},   {"int32", 4},   {"uint32", 4},  {"int64", 8},    {"uint64", 8},
      {"float32", 4}, {"float64", 8}, {"float16", 2}, {"bfloat16", 2}, {"int8", 1},
      {"int16", 2},   {"uint16", 2},  {"bool", 1}};
  static_assert(std::size(facts) == static_cast<std::size_t>(DType::boolean) + 1);
  const auto number = static_cast<std::size_t>(dtype);
  return number < std::size(facts) ? &facts[number] : nullptr;
}

}  // namespace

std::size_t size_of(DType dtype) {
  if (const DTypeFacts* facts = facts_of(dtype)) return facts->bytes;
  throw Error(ErrorCode::invalid_argument,
              "unknown dtype " + std::to_string(static_cast<int>(dtype)));
}

const char* to_string(DType dtype) {
  const DTypeFacts* facts = facts_of(dtype);
  return facts == nullptr ? "unknown" : facts->name;
}

std::optional<DType> dtype_of(std::string_view name) {
  for (int number = 0; number <= static_cast<int>(DType::boolean); ++number)
    if (const auto dtype = static_cast<DType>(number); name == to_string(dtype)) return dtype;
  return {};
}

Float16::operator float() const {
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  // Exponent and mantissa, at their positions in a float32.
  const std::uint32_t rest = (bits & 0x7FFFU) << 13U;
  const std::uint32_t exponent = bits & 0x7C00U;
  if (exponent == 0x7C00U) return std::bit_cast<float>(sign | 0x7F800000U | rest);
  if (exponent > 0) return std::bit_cast<float>(sign | (rest + (112U << 23U)));
  const float magnitude = static_cast<float>(bits & 0x3FFU) * 0x1p-24F;
  return sign != 0 ? -magnitude : magnitude;
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
  std::ranges::copy(extents(), result.extents_.begin() + 1);
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
