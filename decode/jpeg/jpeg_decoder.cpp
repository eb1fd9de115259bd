// SPDX-License-Identifier: Apache-2.0
#include "jpeg/jpeg_decoder.h"

#include <algorithm>
#include <bit>
#include <string>

#include "jpeg/libjpeg.h"

namespace millrace {
namespace {

/// C M Y K as Adobe stores it (inverted) to RGB, as Pillow rounds it; a row, in place.
void cmyk_to_rgb(std::uint8_t* row, unsigned width) {
  const std::uint8_t* from = row;
  for (unsigned x = 0; x < width; ++x, from += 4, row += 3) {
    const int light = from[3];
    for (int channel = 0; channel < 3; ++channel) {
      const int product = (255 - from[channel]) * light + 128;
      row[channel] =
          static_cast<std::uint8_t>(std::max(0, light - ((product + (product >> 8)) >> 8)));
    }
  }
}

std::size_t row_bytes(const jpeg_decompress_struct& image) {
  return std::size_t{image.output_width} * static_cast<std::size_t>(image.output_components);
}

std::int64_t pixels_of(Size size) { return std::int64_t{size.width} * size.height; }

void check_inside(const Region& region, Size image) {
  if (region.x < 0 || region.y < 0 || region.width < 1 || region.height < 1 ||
      region.x > image.width - region.width || region.y > image.height - region.height)
    throw Error(ErrorCode::invalid_argument,
                "region " + std::to_string(region.width) + " x " + std::to_string(region.height) +
                    " at (" + std::to_string(region.x) + ", " + std::to_string(region.y) +
                    ") is not inside an image of " + std::to_string(image.width) + " x " +
                    std::to_string(image.height));
}

}  // namespace

JpegDecoder::JpegDecoder(std::shared_ptr<DecodeBudget> budget)
    : budget_(std::move(budget)),
      libjpeg_(std::make_unique<Libjpeg>(budget_->limits().max_scan_pixels)) {}
JpegDecoder::~JpegDecoder() = default;
JpegDecoder::JpegDecoder(JpegDecoder&&) noexcept = default;
JpegDecoder& JpegDecoder::operator=(JpegDecoder&&) noexcept = default;

Status JpegDecoder::open(std::span<const std::byte> encoded) {
  opened_ = false;
  close();
  Status status = libjpeg_->open(encoded);
  if (status.is_ok()) {
    const jpeg_decompress_struct& image = libjpeg_->image();
    header_.kind = ImageKind::jpeg;
    header_.decoder = "libjpeg-turbo";
    header_.width = static_cast<int>(image.image_width);
    header_.height = static_cast<int>(image.image_height);
    header_.components = image.num_components;
    header_.progressive = image.progressive_mode != FALSE;
    header_.arithmetic = image.arith_code != FALSE;
    if (pixels_of(header_.size()) > max_pixels)
      status = Status::bad(std::to_string(header_.width) + " x " + std::to_string(header_.height) +
                           " pixels; at most " + std::to_string(max_pixels / 1'000'000) +
                           " megapixels are decoded");
    else if (header_.components != 1 && header_.components != 3 && header_.components != 4)
      status = Status::bad("a JPEG of " + std::to_string(header_.components) +
                           " components; only 1, 3 and 4 are supported");
    else
      status = check_limits(encoded.size());
  }
  opened_ = status.is_ok();
  if (!opened_) libjpeg_->end();
  return status;
}

Status JpegDecoder::check_limits(std::size_t encoded_bytes) const {
  const DecodeLimits& limits = budget_->limits();
  const std::string size =
      std::to_string(header_.width) + " x " + std::to_string(header_.height) + " pixels";
  const auto pixels = static_cast<std::uint64_t>(pixels_of(header_.size()));
  if ((pixels - 1) / encoded_bytes >= limits.max_pixels_per_byte)
    return Status::bad(size + " in " + std::to_string(encoded_bytes) + " bytes; at most " +
                       std::to_string(limits.max_pixels_per_byte) +
                       " pixels per byte are decoded (max_pixels_per_byte)");
  const std::uint64_t needed = needed_bytes({0, 0, header_.width, header_.height});
  if (needed > DecodeBudget::small_bytes && needed > limits.max_decode_bytes)
    return Status::bad(size + " take " + std::to_string(needed) +
                       " bytes of memory to decode; at most " +
                       std::to_string(limits.max_decode_bytes) + " are taken (max_decode_bytes)");
  return Status::ok();
}

/// The most memory of an image's size that is in use while a region is decoded.
std::uint64_t JpegDecoder::needed_bytes(Region region) const {
  const jpeg_decompress_struct& image = libjpeg_->image();
  const std::uint64_t coefficients = libjpeg_->coefficient_bytes();
  // It is known from `start` on where the output begins: at most two blocks beside the region, or,
  // where there are several scans, at the image's corner.
  constexpr int widest_blocks = 2 * 2 * DCTSIZE * MAX_SAMP_FACTOR;
  if (coefficients > 0) region = {0, 0, header_.width, region.y + region.height};
  const auto width =
      static_cast<std::uint64_t>(std::min(header_.width, region.width + widest_blocks));
  const std::uint64_t scratch =
      width * static_cast<std::uint64_t>(region.height) * (image.num_components == 4 ? 4U : 3U);
  return coefficients + scratch;
}

DecodeBudget::Lease JpegDecoder::take(const Region& region) const {
  // Scratch that is larger than it need be counts here, but not for the limits: no image may be bad
  // for those before it.
  const std::uint64_t needed =
      std::max(needed_bytes(region), libjpeg_->coefficient_bytes() + scratch_bytes_);
  return budget_->take(needed);
}

Status JpegDecoder::decode(const Region& region, PixelView& view) {
  view = {};
  begin();
  check_inside(region, header_.size());
  DecodeBudget::Lease lease = take(region);
  Status status = read(region, view);
  libjpeg_->end();
  lease_ = std::move(lease);
  if (!status.is_ok()) close();
  return status;
}

Status JpegDecoder::check() {
  begin();
  const DecodeBudget::Lease lease = take({0, 0, 1, 1});
  Status status = read_all();
  libjpeg_->end();
  return status;
}

void JpegDecoder::close() {
  if (scratch_bytes_ > DecodeBudget::small_bytes) drop_scratch();
  lease_ = {};
}

void JpegDecoder::begin() {
  if (!opened_)
    throw Error(ErrorCode::invalid_argument,
                "no image is open; call open() before each decode() or check()");
  opened_ = false;
}

Status JpegDecoder::read(const Region& region, PixelView& view) {
  unsigned left = 0;
  unsigned top = 0;
  if (Status started = start(region, left, top); !started.is_ok()) return started;

  const jpeg_decompress_struct& image = libjpeg_->image();
  const unsigned x = static_cast<unsigned>(region.x) - left;
  const unsigned skipped = static_cast<unsigned>(region.y) - top;
  const unsigned rows = skipped + static_cast<unsigned>(region.height);
  const std::size_t stride = row_bytes(image);
  std::uint8_t* pixels = reserve(stride * rows);
  if (Status done = libjpeg_->read(rows, pixels, stride); !done.is_ok()) return done;

  std::uint8_t* first_row = pixels + skipped * stride;
  if (image.output_components == 4)
    for (int row = 0; row < region.height; ++row)
      cmyk_to_rgb(first_row + static_cast<std::size_t>(row) * stride, image.output_width);
  view = {first_row + std::size_t{3} * x, region.width, region.height, stride};
  return Status::ok();
}

Status JpegDecoder::read_all() {
  // A strip at the left edge costs little beside the entropy decoding, which has to go over all of
  // the data anyway.
  unsigned left = 0;
  unsigned top = 0;
  if (Status started = start({0, 0, 1, header_.height}, left, top); !started.is_ok())
    return started;
  if (libjpeg_->has_multiple_scans()) return Status::ok();  // all read by now
  const jpeg_decompress_struct& image = libjpeg_->image();
  Status read = libjpeg_->read(image.output_height, reserve(row_bytes(image)), 0);
  return read.is_ok() ? libjpeg_->finish() : read;
}

/// Begins output so that the next row is row `top` of the image and its first pixel is column
/// `left`; both at or before the region's.
Status JpegDecoder::start(const Region& region, unsigned& left, unsigned& top) {
  if (Status started = libjpeg_->start(); !started.is_ok()) return started;
  // Smoothing takes a block at the crop's edge for one at the image's edge, so such images are
  // decoded at full width.
  if (libjpeg_->smooths()) return Status::ok();
  if (Status cropped = crop(region, left); !cropped.is_ok()) return cropped;
  top = static_cast<unsigned>(region.y);
  return top > 0 ? libjpeg_->skip(top) : Status::ok();
}

Status JpegDecoder::crop(const Region& region, unsigned& left) {
  // Where colour is stored at a lower resolution, upsampling looks at both neighbours of a pixel
  // and would take the crop's edges for the image's; a crop of under two samples of colour is even
  // upsampled in another way. So: one column more on each side, and never less than two blocks.
  const jpeg_decompress_struct& image = libjpeg_->image();
  const unsigned margin = image.max_h_samp_factor > 1 ? 1 : 0;
  const unsigned narrowest = static_cast<unsigned>(2 * DCTSIZE * image.max_h_samp_factor);
  const auto x = static_cast<unsigned>(region.x);
  left = x < margin ? 0 : x - margin;
  unsigned right = std::min(x + static_cast<unsigned>(region.width) + margin, image.output_width);
  if (right - left < narrowest) {
    right = std::min(left + narrowest, image.output_width);
    left = std::min(left, right < narrowest ? 0 : right - narrowest);
  }
  unsigned width = right - left;
  return width < image.output_width ? libjpeg_->crop(left, width) : Status::ok();
}

void JpegDecoder::drop_scratch() {
  scratch_.reset();
  scratch_bytes_ = 0;
}

std::uint8_t* JpegDecoder::reserve(std::size_t bytes) {
  if (scratch_bytes_ < bytes) {
    drop_scratch();  // nothing in it is worth copying
    const std::size_t room = bytes > DecodeBudget::small_bytes ? bytes : std::bit_ceil(bytes);
    scratch_ = std::make_unique_for_overwrite<std::uint8_t[]>(room);
    scratch_bytes_ = room;
  }
  return scratch_.get();
}

}  // namespace millrace
