// SPDX-License-Identifier: Apache-2.0
#pragma once

// Threads and lifetimes: all types are values. One thread must not write to an object while another
// uses it. A `Tensor` is a view: the batch or slot that owns the memory must outlive it.

#include <millrace/detail/export.h>
#include <millrace/error.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace MILLRACE_API millrace {

enum class DType : std::uint8_t {
  uint8,
  int32,
  uint32,
  int64,
  uint64,
  float32,
  float64,
  float16,
  bfloat16,
  int8,
  int16,
  uint16,
  boolean,  ///< "bool": one byte, 0 or 1
};

/// Bytes of one element. Throws `Error` (`invalid_argument`) for an invalid dtype.
std::size_t size_of(DType dtype);
const char* to_string(DType dtype);
/// The dtype of this name (`to_string`); nullopt for an unknown name.
std::optional<DType> dtype_of(std::string_view name);

/// An IEEE 754 half-precision number, as its bits.
struct Float16 {
  std::uint16_t bits = 0;
  /// Its value as float32, which is exact; NaN stays NaN.
  operator float() const;  // NOLINT(google-explicit-constructor)
};

/// A bfloat16 number: the upper half of a float32's bits.
struct Bfloat16 {
  std::uint16_t bits = 0;
  operator float() const {  // NOLINT(google-explicit-constructor)
    return std::bit_cast<float>(std::uint32_t{bits} << 16U);
  }
};

/// `DTypeOf<T>::value` is the dtype of the C++ type `T`. Users may specialise it for another type
/// with the same bits, such as CUDA's `__half`.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<bool> : std::integral_constant<DType, DType::boolean> {};
template <>
struct DTypeOf<std::int8_t> : std::integral_constant<DType, DType::int8> {};
template <>
struct DTypeOf<std::int16_t> : std::integral_constant<DType, DType::int16> {};
template <>
struct DTypeOf<std::uint16_t> : std::integral_constant<DType, DType::uint16> {};
template <>
struct DTypeOf<Float16> : std::integral_constant<DType, DType::float16> {};
template <>
struct DTypeOf<Bfloat16> : std::integral_constant<DType, DType::bfloat16> {};
template <>
struct DTypeOf<std::uint8_t> : std::integral_constant<DType, DType::uint8> {};
template <>
struct DTypeOf<std::int32_t> : std::integral_constant<DType, DType::int32> {};
template <>
struct DTypeOf<std::uint32_t> : std::integral_constant<DType, DType::uint32> {};
template <>
struct DTypeOf<std::int64_t> : std::integral_constant<DType, DType::int64> {};
template <>
struct DTypeOf<std::uint64_t> : std::integral_constant<DType, DType::uint64> {};
template <>
struct DTypeOf<float> : std::integral_constant<DType, DType::float32> {};
template <>
struct DTypeOf<double> : std::integral_constant<DType, DType::float64> {};

/// Extents of a tensor, outermost first; at most `max_rank` of them. A scalar has rank 0 and one
/// element.
class Shape {
 public:
  static constexpr std::size_t max_rank = 6;

  Shape() = default;
  Shape(std::initializer_list<std::size_t> extents);

  std::size_t rank() const { return rank_; }
  std::size_t operator[](std::size_t axis) const { return extents_[axis]; }
  /// Product of the extents.
  std::size_t elements() const;
  /// Returns this shape with one more, outermost, extent.
  Shape with_outer(std::size_t extent) const;
  /// "[64, 224, 224, 3]"
  std::string to_string() const;
  std::span<const std::size_t> extents() const { return {extents_.data(), rank_}; }
  friend bool operator==(const Shape& a, const Shape& b) = default;

 private:
  std::array<std::size_t, max_rank> extents_{};
  std::size_t rank_ = 0;
};

/// A dense row-major view of memory that another object owns: a field of one sample (in its host
/// slot) or of a batch (in its host or device slot). For a batch on a GPU `data` is a device
/// pointer.
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::uint8;
  Shape shape;

  std::size_t bytes() const { return shape.elements() * size_of(dtype); }

  /// The elements as `T`. Throws `Error` (`invalid_argument`) when `T` is not the tensor's dtype.
  template <typename T>
  std::span<T> as() const {
    if (DTypeOf<T>::value != dtype) throw_other_dtype(DTypeOf<T>::value);
    return {static_cast<T*>(data), shape.elements()};
  }

 private:
  [[noreturn]] void throw_other_dtype(DType asked) const;
};

}  // namespace millrace
