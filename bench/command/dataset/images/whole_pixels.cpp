// SPDX-License-Identifier: Apache-2.0
#include "command/dataset/images/whole_pixels.h"

#include <xxhash.h>

#include <cstddef>

namespace millrace::cli {

Status whole_pixels(ImageDecoder& decoder, std::uint64_t& checksum) {
  const Size size = decoder.header().size();
  PixelView view;
  if (Status decoded = decoder.decode({0, 0, size.width, size.height}, view); !decoded.is_ok())
    return decoded;
  checksum = 0;
  for (int row = 0; row < view.height; ++row)
    checksum =
        XXH3_64bits_withSeed(view.pixels + static_cast<std::size_t>(row) * view.stride,
                             std::size_t{3} * static_cast<std::size_t>(view.width), checksum);
  decoder.close();
  return Status::ok();
}

}  // namespace millrace::cli
