// SPDX-License-Identifier: Apache-2.0
#include <millrace/image_decoder.h>

#include <array>

int main() {
  const std::array<std::byte, 4> no_jpeg{};
  return millrace::make_image_decoder()->open(no_jpeg).is_ok() ? 1 : 0;
}
