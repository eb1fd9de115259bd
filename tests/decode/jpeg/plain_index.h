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

inline std::optional<PlainIndex> read_plainly(std::span<const std::byte> packed) {
  const auto number = [&](std::size_t at, std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t n = bytes; n > 0; --n)
      value = value * 256 + std::to_integer<std::uint64_t>(packed[at + n - 1]);
    return value;
  };
  const std::size_t end = packed.size() - 4;
  if (number(0, 1) < 1 || number(0, 1) > 2 ||
      number(end, 4) != (XXH3_64bits(packed.data(), end) & 0xFFFFFFFF))
    return std::nullopt;
  PlainIndex index{static_cast<int>(number(1, 1)), number(6, 8),
                   number(0, 1) == 1 ? IndexPoints::tiles : IndexPoints::rows};
  std::size_t bit = 18 * 8;
  const auto take_bit = [&] {
    const unsigned value = std::to_integer<unsigned>(packed[bit / 8]) >> (7 - bit % 8) & 1;
    ++bit;
    return value;
  };
  const auto take_number = [&](std::uint64_t parameter) {
    unsigned ones = 0;
    while (ones < 24 && take_bit() == 1) ++ones;
    std::uint64_t value = ones == 24 ? 0 : ones;
    for (std::uint64_t n = 0; n < (ones == 24 ? 32 : parameter); ++n)
      value = 2 * value + take_bit();
    return value;
  };
  index.points.resize(number(2, 4));
  for (std::size_t n = 1; n < index.points.size(); ++n) {
    jpeg::SeekPoint& point = index.points[n];
    point = index.points[n - 1];
    point.bit += take_number(number(14, 1));
    for (int component = 0; component < index.components; ++component) {
      const auto at = static_cast<std::size_t>(component);
      const auto stored = static_cast<std::int64_t>(take_number(number(15 + at, 1)));
      const std::int64_t d = stored % 2 == 0 ? stored / 2 : -(stored + 1) / 2;
      point.predictors[at] = static_cast<std::uint16_t>(point.predictors[at] + d);
    }
  }
  EXPECT_EQ((bit + 7) / 8, end) << "bytes that are not needed";
  return index;
}

}  // namespace millrace::testing
