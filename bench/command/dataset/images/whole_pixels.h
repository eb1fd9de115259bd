// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>
#include <millrace/image_decoder.h>

#include <cstdint>

namespace millrace::cli {

/// Decodes the opened image as a whole, and computes a checksum of its pixels. Closes it.
Status whole_pixels(ImageDecoder& decoder, std::uint64_t& checksum);

}  // namespace millrace::cli
