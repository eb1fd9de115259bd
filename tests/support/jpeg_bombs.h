// SPDX-License-Identifier: Apache-2.0
//
// JPEGs of a few bytes that claim to be large, made by hand (ITU-T T.81). They are valid, because
// data that an arithmetic coder leaves out is read as zeros.
#pragma once

#include <initializer_list>

#include "support/jpeg_samples.h"

namespace millrace::testing {

/// Claims of a JPEG's headers.
struct Claim {
  int width = 10'000;
  int height = 10'000;
  int components = 3;
  /// One scan for all components' DC; the others are for the first component's AC.
  int scans = 1;
  /// Bytes of empty comments.
  int padding = 0;
};

/// A progressive, arithmetic-coded JPEG without any data.
inline Bytes hollow_jpeg(const Claim& claim) {
  Bytes bytes;
  const auto put = [&](std::initializer_list<int> values) {
    for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  };
  const int components = claim.components;
  put({0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0});
  for (int step = 0; step < 64; ++step) put({1});
  for (int left = claim.padding; left > 0; left -= 60'000) {
    const int length = left < 60'000 ? left : 60'000;
    put({0xFF, 0xFE, (length + 2) >> 8, (length + 2) & 255});
    bytes.resize(bytes.size() + static_cast<std::size_t>(length), std::byte{' '});
  }
  put({0xFF, 0xCA, 0, 8 + 3 * components, 8, claim.height >> 8, claim.height & 255,
       claim.width >> 8, claim.width & 255, components});
  for (int component = 1; component <= components; ++component) put({component, 0x11, 0});
  put({0xFF, 0xDA, 0, 6 + 2 * components, components});
  for (int component = 1; component <= components; ++component) put({component, 0});
  put({0, 0, 0});
  for (int scan = 1; scan < claim.scans; ++scan) put({0xFF, 0xDA, 0, 8, 1, 1, 0, 1, 63, 0});
  put({0xFF, 0xD9});
  return bytes;
}

}  // namespace millrace::testing
