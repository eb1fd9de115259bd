// SPDX-License-Identifier: Apache-2.0
#include "png/png_decoder.h"

#include <algorithm>
#include <cstring>

#include "png/passes.h"

namespace millrace {
namespace {

/// Copies the pixels of a pass's row that are in the region to their places in the region's row.
void place(const std::uint8_t* row, const PngPass& pass, bool is_grey_16, const Region& region,
           std::uint8_t* to) {
  if (pass.step_x == 1 && !is_grey_16) {
    std::memcpy(to, row + std::size_t{3} * static_cast<std::size_t>(region.x - pass.left),
                std::size_t{3} * static_cast<std::size_t>(region.width));
    return;
  }
  int column = region.x <= pass.left ? 0 : (region.x - pass.left + pass.step_x - 1) / pass.step_x;
  for (int x = pass.left + column * pass.step_x; x < region.x + region.width;
       x += pass.step_x, ++column) {
    std::uint8_t* pixel = to + 3 * (x - region.x);
    if (is_grey_16)
      std::fill_n(pixel, 3, row[2 * column] != 0 ? std::uint8_t{255} : row[2 * column + 1]);
    else
      std::memcpy(pixel, row + 3 * column, 3);
  }
}

}  // namespace

bool PngDecoder::is_grey_16() const {
  return info_.colour == PngInfo::Colour::grey && info_.bits_per_sample == 16;
}

Status PngDecoder::read_header(std::span<const std::byte> encoded, ImageHeader& header) {
  if (Status read = read_png_info(encoded, info_); !read.is_ok()) return read;
  info_.decoder = info_.interlaced ? "libpng (interlaced)" : "libpng";
  header = info_;
  return libpng_.open(encoded);
}

std::uint64_t PngDecoder::scratch_bytes(const Region&) const {
  // libpng's current, previous and resulting row, and our row, with at most 8 bytes per pixel.
  return std::uint64_t{4} * 8 * static_cast<std::uint64_t>(info_.width);
}

Status PngDecoder::read_region(const Region& region, PixelView& view) {
  const std::size_t stride = 3 * static_cast<std::size_t>(region.width);
  const std::size_t pixel_bytes = stride * static_cast<std::size_t>(region.height);
  std::uint8_t* pixels = reserve(pixel_bytes + 3 * static_cast<std::size_t>(info_.width));
  std::uint8_t* const row = pixels + pixel_bytes;
  const bool is_direct = !info_.interlaced && !is_grey_16() && region.width == info_.width;

  const Libpng::End at_end{libpng_};
  if (Status started = libpng_.start(); !started.is_ok()) return started;
  const std::span<const PngPass> passes = png_passes(info_.interlaced);
  const auto reaches = [&](const PngPass& pass) { return pass.top < region.y + region.height; };
  const PngPass* last = &passes.back();
  while (!reaches(*last) || last->columns(info_.width) == 0 || last->rows(info_.height) == 0)
    --last;
  for (const PngPass& pass : passes) {
    if (pass.columns(info_.width) <= 0) continue;
    const int rows = pass.rows(&pass == last ? region.y + region.height : info_.height);
    for (int n = 0; n < rows; ++n) {
      const int y = pass.top + n * pass.step_y;
      const bool is_shown = y >= region.y && y < region.y + region.height;
      std::uint8_t* const to =
          pixels + (is_shown ? static_cast<std::size_t>(y - region.y) * stride : 0);
      std::uint8_t* const read_to = !is_shown ? nullptr : is_direct ? to : row;
      if (Status read = libpng_.read_row(read_to); !read.is_ok()) return read;
      if (read_to == row) place(row, pass, is_grey_16(), region, to);
    }
    if (&pass == last) break;
  }
  view = {pixels, region.width, region.height, stride};
  return Status::ok();
}

Status PngDecoder::read_all() {
  const Libpng::End at_end{libpng_};
  if (Status started = libpng_.start(); !started.is_ok()) return started;
  for (const PngPass& pass : png_passes(info_.interlaced))
    if (pass.columns(info_.width) > 0)
      for (int n = 0; n < pass.rows(info_.height); ++n)
        if (Status read = libpng_.read_row(nullptr); !read.is_ok()) return read;
  return libpng_.finish();
}

}  // namespace millrace
