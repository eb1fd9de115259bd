// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of one 8-bit pixel value. The host and CUDA kernels (compiled by nvcc) use the same
// functions and get the same bits. No product is added to a value, so compilers cannot form a fused
// multiply-add. Divisions are those of IEEE 754 (nvcc's default, -prec-div=true).
#pragma once

#include <bit>
#include <cstdint>

#ifdef __CUDACC__
#define MILLRACE_HOST_DEVICE __host__ __device__
#else
#define MILLRACE_HOST_DEVICE
#endif

namespace millrace {

/// Normalises in torchvision's order of operations: `ToTensor` divides by 255, `Normalize`
/// subtracts the mean and divides by the standard deviation, all in float32.
MILLRACE_HOST_DEVICE inline float normalised(std::uint8_t value, float mean, float std) {
  return (static_cast<float>(value) / 255.0F - mean) / std;
}

namespace detail {

MILLRACE_HOST_DEVICE inline std::uint32_t bits_of(float value) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(value);
#else
  return std::bit_cast<std::uint32_t>(value);
#endif
}

}  // namespace detail

/// Bits of the nearest bfloat16; ties go to even, NaN stays NaN.
MILLRACE_HOST_DEVICE inline std::uint16_t to_bfloat16(float value) {
  const std::uint32_t bits = detail::bits_of(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

/// Bits of the nearest IEEE 754 half-precision number; ties go to even. Values that are too large
/// become infinite, NaN stays NaN.
MILLRACE_HOST_DEVICE inline std::uint16_t to_float16(float value) {
  const std::uint32_t bits = detail::bits_of(value);
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return static_cast<std::uint16_t>(sign | 0x7E00U);
  if (magnitude >= 0x477FF000U)
    return static_cast<std::uint16_t>(sign | 0x7C00U);  // 65520 and above
  if (magnitude >= 0x38800000U) {                       // 2^-14: normal
    const std::uint32_t rebiased = magnitude - 0x38000000U;
    return static_cast<std::uint16_t>(sign |
                                      ((rebiased + 0xFFFU + ((rebiased >> 13U) & 1U)) >> 13U));
  }
  if (magnitude < 0x33000000U) return static_cast<std::uint16_t>(sign);  // below 2^-25
  const std::uint32_t shift = 126U - (magnitude >> 23U);                 // 14 .. 24
  const std::uint32_t mantissa = (magnitude & 0x7FFFFFU) | 0x800000U;
  const std::uint32_t half = 1U << (shift - 1U);
  const std::uint32_t rest = mantissa & ((1U << shift) - 1U);
  const std::uint32_t kept = mantissa >> shift;
  return static_cast<std::uint16_t>(
      sign | (kept + (rest > half || (rest == half && (kept & 1U) != 0) ? 1U : 0U)));
}

}  // namespace millrace
