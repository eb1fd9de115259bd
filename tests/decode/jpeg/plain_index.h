// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "jpeg/index.h"

namespace millrace::testing {

/// A packed index as a program reads it that uses only the index's specification.
struct PlainIndex {
  int components = 0;
  std::uint64_t jpeg = 0;
  IndexPoints of = IndexPoints::tiles;
  std::vector<jpeg::SeekPoint> points{};

  jpeg::SeekIndex index() const { return {of, points}; }
};

/// The bits of a packed index, which has them from byte `first` on.
class PlainBits {
 public:
  PlainBits(std::span<const std::byte> packed, std::size_t first)
      : packed_(packed), bit_(8 * first) {}

  std::uint64_t take_bits(std::uint64_t count) {
    std::uint64_t value = 0;
    for (; count > 0; --count, ++bit_)
      value = 2 * value + (std::to_integer<unsigned>(packed_[bit_ / 8]) >> (7 - bit_ % 8) & 1);
    return value;
  }
  std::uint64_t take_number(std::uint64_t parameter) {
    unsigned ones = 0;
    while (ones < 24 && take_bits(1) == 1) ++ones;
    if (ones == 24) return take_bits(32);
    return (std::uint64_t{ones} << parameter) + take_bits(parameter);
  }
  /// Adds a number's difference to a predictor.
  void move(std::uint16_t& predictor, std::uint64_t parameter) {
    const auto stored = static_cast<std::int64_t>(take_number(parameter));
    const std::int64_t d = stored % 2 == 0 ? stored / 2 : -(stored + 1) / 2;
    predictor = static_cast<std::uint16_t>(predictor + d);
  }
  std::size_t bytes() const { return (bit_ + 7) / 8; }

 private:
  std::span<const std::byte> packed_;
  std::size_t bit_;
};

inline std::uint64_t plain_number(std::span<const std::byte> packed, std::size_t at,
                                  std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t n = bytes; n > 0; --n)
    value = value * 256 + std::to_integer<std::uint64_t>(packed[at + n - 1]);
  return value;
}

/// The packed index of a progressive JPEG, read in the same way.
struct PlainScanIndex {
  std::size_t scans = 0;
  std::uint64_t jpeg = 0;
  std::vector<jpeg::SeekPoint> points{};

  jpeg::SeekIndex index() const { return {IndexPoints::rows, points}; }
};

inline std::optional<PlainScanIndex> read_scans_plainly(std::span<const std::byte> packed) {
  const std::size_t end = packed.size() - 4;
  if (plain_number(packed, 0, 1) != 3 ||
      plain_number(packed, end, 4) != (XXH3_64bits(packed.data(), end) & 0xFFFFFFFF))
    return std::nullopt;
  PlainScanIndex index{.scans = plain_number(packed, 1, 1), .jpeg = plain_number(packed, 6, 8)};
  const std::uint64_t rows = plain_number(packed, 2, 4);
  index.points.resize(rows * index.scans);
  PlainBits bits(packed, 14);
  for (std::size_t scan = 0; scan < index.scans; ++scan)
    for (std::size_t column = 0; column < 5; ++column) {
      const std::uint64_t parameter = bits.take_bits(4);
      for (std::size_t row = 1; row < rows; ++row) {
        const jpeg::SeekPoint& before = index.points[(row - 1) * index.scans + scan];
        jpeg::SeekPoint& point = index.points[row * index.scans + scan];
        if (column == 0) point.bit = before.bit;
        if (column > 0 && column < 4) point.predictors[column - 1] = before.predictors[column - 1];
        if (parameter == 15) continue;
        if (column == 0)
          point.bit += bits.take_number(parameter);
        else if (column == 4)
          point.run = static_cast<std::uint16_t>(bits.take_number(parameter));
        else
          bits.move(point.predictors[column - 1], parameter);
      }
    }
  EXPECT_EQ(bits.bytes(), end) << "bytes that are not needed";
  return index;
}

inline std::optional<PlainIndex> read_plainly(std::span<const std::byte> packed) {
  const auto number = [&](std::size_t at, std::size_t bytes) {
    return plain_number(packed, at, bytes);
  };
  const std::size_t end = packed.size() - 4;
  if (number(0, 1) < 1 || number(0, 1) > 2 ||
      number(end, 4) != (XXH3_64bits(packed.data(), end) & 0xFFFFFFFF))
    return std::nullopt;
  PlainIndex index{static_cast<int>(number(1, 1)), number(6, 8),
                   number(0, 1) == 1 ? IndexPoints::tiles : IndexPoints::rows};
  PlainBits bits(packed, 18);
  index.points.resize(number(2, 4));
  for (std::size_t n = 1; n < index.points.size(); ++n) {
    jpeg::SeekPoint& point = index.points[n];
    point = index.points[n - 1];
    point.bit += bits.take_number(number(14, 1));
    for (int component = 0; component < index.components; ++component) {
      const auto at = static_cast<std::size_t>(component);
      bits.move(point.predictors[at], number(15 + at, 1));
    }
  }
  EXPECT_EQ(bits.bytes(), end) << "bytes that are not needed";
  return index;
}

}  // namespace millrace::testing
