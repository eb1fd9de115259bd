// SPDX-License-Identifier: Apache-2.0
#include "codec/raster_decoder.h"

#include <algorithm>
#include <utility>

#include "codec/limits.h"

namespace millrace {
namespace {

/// Returns the rounded mean of a block of pixels in one channel.
std::uint8_t mean(const std::uint8_t* corner, Size block, std::size_t stride) {
  const auto count = static_cast<unsigned>(block.width * block.height);
  unsigned sum = count / 2;
  for (int y = 0; y < block.height; ++y, corner += stride)
    for (int x = 0; x < block.width; ++x) sum += corner[3 * x];
  return static_cast<std::uint8_t>(sum / count);
}

}  // namespace

RasterDecoder::RasterDecoder(std::shared_ptr<DecodeBudget> budget) : budget_(std::move(budget)) {}

Status RasterDecoder::open(std::span<const std::byte> encoded) {
  opened_ = false;
  close();
  encoded_ = encoded;
  if (Status read = read_header(encoded, header_); !read.is_ok()) return read;
  if (Status few = check_pixels(header_.size(), budget_->limits()); !few.is_ok()) return few;
  const Region whole{0, 0, header_.width, header_.height};
  Status allowed =
      check_limits(header_.size(), encoded.size(), needed_bytes(whole), budget_->limits());
  opened_ = allowed.is_ok();
  return allowed;
}

std::uint64_t RasterDecoder::needed_bytes(const Region& region) const {
  return 3 * static_cast<std::uint64_t>(pixels_of({region.width, region.height})) +
         scratch_bytes(region);
}

void RasterDecoder::begin() {
  if (!opened_)
    throw Error(ErrorCode::invalid_argument,
                "no image is open; call open() before each decode() or check()");
  opened_ = false;
}

Status RasterDecoder::decode(const Region& region, PixelView& view) {
  view = {};
  begin();
  check_inside(region, header_.size());
  return decode_reserved(region, 1, view);
}

Status RasterDecoder::decode_reduced(const Region& region, int reduction, PixelView& view) {
  view = {};
  check_reduction(reduction);
  begin();
  check_inside(region, reduced_size(header_.size(), reduction));
  return decode_reserved(region, reduction, view);
}

Status RasterDecoder::decode_reserved(const Region& region, int reduction, PixelView& view) {
  Region stored = region;
  if (reduction > 1) {
    stored.x *= reduction;
    stored.y *= reduction;
    stored.width = std::min(region.width * reduction, header_.width - stored.x);
    stored.height = std::min(region.height * reduction, header_.height - stored.y);
  }
  // Scratch that is larger than needed counts for the budget, but not for the limits: earlier
  // images must not make an image bad.
  const std::uint64_t kept = scratch_.bytes() + reduced_.bytes();
  DecodeBudget::Reservation reservation = budget_->take(std::max(needed_bytes(stored), kept));
  Status read = read_region(stored, view);
  if (read.is_ok() && reduction > 1) {
    const PixelView whole = std::exchange(view, {});
    reduce(whole, {region.width, region.height}, reduction, view);
  }
  reservation_ = std::move(reservation);
  if (!read.is_ok()) {
    view = {};
    close();
  }
  return read;
}

void RasterDecoder::reduce(const PixelView& whole, Size to, int reduction, PixelView& view) {
  const std::size_t stride = 3 * static_cast<std::size_t>(to.width);
  std::uint8_t* out = reduced_.reserve(stride * static_cast<std::size_t>(to.height));
  view = {out, to.width, to.height, stride};
  for (int y = 0; y < to.height; ++y)
    for (int x = 0; x < to.width; ++x)
      for (int channel = 0; channel < 3; ++channel)
        *out++ = mean(whole.pixels + static_cast<std::size_t>(y * reduction) * whole.stride +
                          3 * x * reduction + channel,
                      {std::min(reduction, whole.width - x * reduction),
                       std::min(reduction, whole.height - y * reduction)},
                      whole.stride);
}

Status RasterDecoder::check() {
  begin();
  const DecodeBudget::Reservation reservation = budget_->take(needed_bytes({0, 0, 1, 1}));
  return read_all();
}

void RasterDecoder::close() {
  scratch_.drop_if_large();
  reduced_.drop_if_large();
  reservation_ = {};
}

}  // namespace millrace
