// SPDX-License-Identifier: Apache-2.0
#include <millrace/jpeg_decoder.h>

#include <array>

int main() {
  const std::array<std::byte, 4> no_jpeg{};
  return millrace::JpegDecoder().open(no_jpeg).is_ok() ? 1 : 0;
}
