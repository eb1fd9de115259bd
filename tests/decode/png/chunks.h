// SPDX-License-Identifier: Apache-2.0
//
// PNGs built by hand.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/jpeg_samples.h"

namespace millrace::testing {

inline std::vector<std::uint8_t> big_endian(std::size_t number) {
  return {static_cast<std::uint8_t>(number >> 24), static_cast<std::uint8_t>(number >> 16),
          static_cast<std::uint8_t>(number >> 8), static_cast<std::uint8_t>(number)};
}

inline void append(Bytes& bytes, const std::vector<std::uint8_t>& more) {
  for (const std::uint8_t byte : more) bytes.push_back(std::byte{byte});
}

inline Bytes chunk(const std::string& name, const std::vector<std::uint8_t>& data) {
  std::vector<std::uint8_t> checked(name.begin(), name.end());
  checked.insert(checked.end(), data.begin(), data.end());
  Bytes bytes;
  append(bytes, big_endian(data.size()));
  append(bytes, checked);
  append(bytes, big_endian(crc32(0, checked.data(), static_cast<unsigned>(checked.size()))));
  return bytes;
}

/// Returns a PNG of these chunks.
inline Bytes png(const std::vector<Bytes>& chunks) {
  Bytes bytes;
  append(bytes, {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'});
  for (const Bytes& part : chunks) bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

inline Bytes header(int width, int height, int bits = 8, int colour = 2, int interlaced = 0) {
  auto data = big_endian(static_cast<std::size_t>(width));
  const auto rows = big_endian(static_cast<std::size_t>(height));
  data.insert(data.end(), rows.begin(), rows.end());
  for (const int value : {bits, colour, 0, 0, interlaced})
    data.push_back(static_cast<std::uint8_t>(value));
  return chunk("IHDR", data);
}

inline std::vector<std::uint8_t> deflated(const std::vector<std::uint8_t>& data) {
  uLongf length = compressBound(data.size());
  std::vector<std::uint8_t> out(length);
  EXPECT_EQ(compress(out.data(), &length, data.data(), data.size()), Z_OK);
  out.resize(length);
  return out;
}

inline const Bytes end_chunk = chunk("IEND", {});

}  // namespace millrace::testing
