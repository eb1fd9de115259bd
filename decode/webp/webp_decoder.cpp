// SPDX-License-Identifier: Apache-2.0
#include "webp/webp_decoder.h"

#include <webp/decode.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace millrace {
namespace {

std::size_t row_bytes_of(const Region& part) { return 3 * static_cast<std::size_t>(part.width); }
std::size_t pixel_bytes_of(const Region& part) {
  return row_bytes_of(part) * static_cast<std::size_t>(part.height);
}

/// Returns the part of an image to decode so that a region's pixels equal those of a whole decode.
/// libwebp's upsampling of chroma reads both neighbours of a pixel, and treats a crop's edges as
/// the image's. So the part has one pixel more on each side, and only complete pixels of chroma.
Region decoded_part(const Region& region, Size image) {
  const auto before = [](int at) { return at > 0 ? (at - 1) & ~1 : 0; };
  const auto behind = [](int end, int side) { return std::min((end + 2) & ~1, side); };
  const int x = before(region.x);
  const int y = before(region.y);
  return {x, y, behind(region.x + region.width, image.width) - x,
          behind(region.y + region.height, image.height) - y};
}

/// Returns the intersection of two regions; its width or height is 0 if it is empty.
Region common(const Region& a, const Region& b) {
  const int x = std::max(a.x, b.x);
  const int y = std::max(a.y, b.y);
  return {x, y, std::max(0, std::min(a.x + a.width, b.x + b.width) - x),
          std::max(0, std::min(a.y + a.height, b.y + b.height) - y)};
}

Status bad(VP8StatusCode code) {
  switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY:
      throw std::bad_alloc();
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return Status::bad("its pixels are cut short");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return Status::bad("it has a feature that libwebp does not support");
    default:
      return Status::bad("its pixels are damaged");
  }
}

}  // namespace

Status WebpDecoder::read_header(std::span<const std::byte> encoded, ImageHeader& header) {
  if (Status read = read_webp_info(encoded, info_); !read.is_ok()) return read;
  info_.decoder = info_.animated   ? "libwebp (first frame)"
                  : info_.lossless ? "libwebp (lossless)"
                                   : "libwebp (lossy)";
  header = info_;
  return Status::ok();
}

std::uint64_t WebpDecoder::scratch_bytes(const Region& region) const {
  const auto frame_pixels = static_cast<std::uint64_t>(info_.frame.width) *
                            static_cast<std::uint64_t>(info_.frame.height);
  // A lossless image is decoded as a whole, to 4 bytes a pixel. An alpha plane may be decoded in
  // the same way, and is kept in addition. A lossy image keeps some rows of macroblocks.
  const std::uint64_t inside = info_.lossless ? 4 * frame_pixels
                               : info_.alpha  ? 5 * frame_pixels
                                              : 0;
  const auto rows = std::uint64_t{64} * static_cast<std::uint64_t>(info_.frame.width);
  const std::uint64_t margins = 12 * (static_cast<std::uint64_t>(region.width) +
                                      static_cast<std::uint64_t>(region.height) + 4);
  return inside + rows + margins + (info_.animated ? 3 * frame_pixels : 0);
}

Status WebpDecoder::read_part(const Region& part, std::uint8_t* pixels) const {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0)
    throw Error(ErrorCode::internal, "libwebp is of another version than its headers", "decode");
  config.options.use_cropping = 1;
  config.options.crop_left = part.x;
  config.options.crop_top = part.y;
  config.options.crop_width = part.width;
  config.options.crop_height = part.height;
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {
      .rgba = pixels, .stride = static_cast<int>(row_bytes_of(part)), .size = pixel_bytes_of(part)};
  const VP8StatusCode code = WebPDecode(reinterpret_cast<const std::uint8_t*>(info_.image.data()),
                                        info_.image.size(), &config);
  WebPFreeDecBuffer(&config.output);
  return code == VP8_STATUS_OK ? Status::ok() : bad(code);
}

Status WebpDecoder::read_region(const Region& region, PixelView& view) {
  const Region& frame = info_.frame;
  const Region shown = common(region, frame);
  const bool is_whole = shown == region;
  const std::size_t canvas_bytes = is_whole ? 0 : pixel_bytes_of(region);
  Region inside{shown.x - frame.x, shown.y - frame.y, shown.width, shown.height};
  // A region outside an animation's frame shows nothing of the frame. Its status is still bad if
  // the frame is bad.
  if (shown.width == 0 || shown.height == 0) inside = {0, 0, 1, 1};
  const Region part = decoded_part(inside, {frame.width, frame.height});
  std::uint8_t* const canvas = reserve(canvas_bytes + pixel_bytes_of(part));
  std::uint8_t* const pixels = canvas + canvas_bytes;
  if (Status read = read_part(part, pixels); !read.is_ok()) return read;
  const std::uint8_t* from = pixels +
                             static_cast<std::size_t>(inside.y - part.y) * row_bytes_of(part) +
                             3 * static_cast<std::size_t>(inside.x - part.x);
  if (is_whole) {
    view = {from, region.width, region.height, row_bytes_of(part)};
    return Status::ok();
  }
  std::memset(canvas, 0, canvas_bytes);
  for (int y = 0; y < shown.height && shown.width > 0; ++y, from += row_bytes_of(part))
    std::memcpy(canvas + static_cast<std::size_t>(shown.y - region.y + y) * row_bytes_of(region) +
                    3 * static_cast<std::size_t>(shown.x - region.x),
                from, row_bytes_of(shown));
  view = {canvas, region.width, region.height, row_bytes_of(region)};
  return Status::ok();
}

Status WebpDecoder::read_all() {
  // Decoding the last rows reads all data before them.
  const Region end =
      decoded_part({0, info_.frame.height - 1, 1, 1}, {info_.frame.width, info_.frame.height});
  return read_part(end, reserve(pixel_bytes_of(end)));
}

}  // namespace millrace
