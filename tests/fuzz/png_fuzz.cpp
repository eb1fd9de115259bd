// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the decoding of PNGs as images and as masks, and of PGM and PPM files. The checksums of a
// PNG's chunks are tried unchanged and corrected, because wrong ones would end the decoding early.
#include <millrace/detail/mask_decoder.h>
#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fuzz/codec_fuzz.h"
#include "fuzz/fuzz_seeds.h"

namespace millrace {
namespace {

std::uint8_t* number_at(std::vector<std::uint8_t>& bytes, std::size_t at, std::uint32_t& number) {
  std::uint8_t* from = bytes.data() + at;
  number = static_cast<std::uint32_t>(from[0]) << 24 | static_cast<std::uint32_t>(from[1]) << 16 |
           static_cast<std::uint32_t>(from[2]) << 8 | from[3];
  return from;
}

void set_checksums(std::vector<std::uint8_t>& bytes) {
  for (std::size_t at = 8; at + 12 <= bytes.size();) {
    std::uint32_t length = 0;
    const std::uint8_t* chunk = number_at(bytes, at, length);
    if (length > bytes.size() - at - 12) return;
    const auto sum = static_cast<std::uint32_t>(crc32(0, chunk + 4, length + 4));
    for (std::size_t n = 0; n < 4; ++n)
      bytes[at + 8 + length + n] = static_cast<std::uint8_t>(sum >> (24 - 8 * n));
    at += std::size_t{12} + length;
  }
}

/// Decodes a PNG as a mask of the size in its header. Aborts if a decoder that has had all of the
/// inputs before behaves differently from a new one. Also aborts if a PNG is accepted as a mask but
/// is not an intact image without colours and alpha.
void expect_sound_mask(std::span<const std::byte> encoded) {
  ImageInfo info;
  if (!read_image_info(encoded, info).is_ok()) return;
  if (std::int64_t{info.width} * info.height > 100'000) return;
  static MaskDecoder used(std::make_shared<DecodeBudget>());
  MaskDecoder fresh(std::make_shared<DecodeBudget>());
  MaskView mask;
  MaskView again;
  const Status decoded = fresh.decode(encoded, info.size(), mask);
  if (used.decode(encoded, info.size(), again).reason() != decoded.reason()) std::abort();
  if (decoded.is_ok() &&
      !std::equal(mask.values, mask.values + info.width * info.height, again.values))
    std::abort();
  const auto image = make_image_decoder(
      std::make_shared<DecodeBudget>(DecodeLimits{.max_pixels_per_byte = 100'000}));
  const bool is_sound = image->open(encoded).is_ok() && image->check().is_ok();
  if (decoded.is_ok() != (is_sound && info.components == 1)) std::abort();
}

/// Makes a PNG of a colour type, as libpng writes it.
std::string png_of(int colour, int bits, bool interlaced) {
  std::string written;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &written,
      [](png_structp to, png_bytep data, std::size_t count) {
        static_cast<std::string*>(png_get_io_ptr(to))
            ->append(reinterpret_cast<const char*>(data), count);
      },
      nullptr);
  constexpr unsigned width = 19, height = 11;
  png_set_IHDR(png, info, width, height, bits, colour,
               interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  constexpr png_color palette[2] = {{1, 2, 3}, {200, 100, 50}};
  if (colour == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, palette, 2);
  png_write_info(png, info);
  std::vector<std::uint8_t> row(std::size_t{8} * width);
  for (int pass = png_set_interlace_handling(png); pass > 0; --pass)
    for (unsigned y = 0; y < height; ++y) {
      for (std::size_t n = 0; n < row.size(); ++n) row[n] = static_cast<std::uint8_t>(n * y);
      if (colour == PNG_COLOR_TYPE_PALETTE) std::ranges::fill(row, std::uint8_t{0});
      png_write_row(png, row.data());
    }
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return written;
}

}  // namespace
}  // namespace millrace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  millrace::testing::write_seeds_if_asked(*argc, *argv, [](const std::filesystem::path& folder) {
    for (const int colour : {0, 2, 3, 4, 6})
      for (const int bits : {1, 2, 4, 8, 16}) {
        if (bits < 8 && colour != 0 && colour != 3) continue;
        if (bits == 16 && colour == 3) continue;
        for (const bool interlaced : {false, true})
          std::ofstream(folder / (std::to_string(colour) + "_" + std::to_string(bits) +
                                  (interlaced ? "_interlaced" : "")),
                        std::ios::binary)
              << millrace::png_of(colour, bits, interlaced);
      }
    std::ofstream(folder / "p5", std::ios::binary) << "P5 # grey\n3 2 255\n123456";
    std::ofstream(folder / "p6", std::ios::binary) << "P6\n1 2\n255\nabcdef";
  });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  millrace::testing::expect_sound_codec(std::as_bytes(std::span(data, size)));
  if (millrace::image_kind(std::as_bytes(std::span(data, size))) != millrace::ImageKind::png)
    return 0;
  std::vector<std::uint8_t> mended(data, data + size);
  millrace::set_checksums(mended);
  millrace::testing::expect_sound_codec(std::as_bytes(std::span(mended)));
  millrace::expect_sound_mask(std::as_bytes(std::span(data, size)));
  millrace::expect_sound_mask(std::as_bytes(std::span(mended)));
  return 0;
}
