// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/mask_decoder.h>

#include <algorithm>
#include <string>
#include <utility>

#include "codec/limits.h"
#include "codec/pixel_scratch.h"
#include "png/libpng.h"
#include "png/passes.h"
#include "png/png_info.h"

namespace millrace {
namespace {

Status refuse(const std::string& what) {
  return Status::bad(what + "; a mask is a PNG of grey or with a palette");
}

/// Reads a mask's header. Returns a bad status if the bytes are not a mask of the given size.
Status read_mask_info(std::span<const std::byte> encoded, Size size, const DecodeLimits& limits,
                      PngInfo& info) {
  if (encoded.empty()) return refuse("it is empty (0 bytes)");
  const ImageKind kind = image_kind(encoded);
  if (kind == ImageKind::unknown) return refuse("it is not a PNG");
  if (kind != ImageKind::png) return refuse(std::string("its format is ") + to_string(kind));
  if (Status read = read_png_info(encoded, info); !read.is_ok()) return read;
  using Colour = PngInfo::Colour;
  if (info.colour == Colour::grey_alpha) return refuse("it has alpha");
  if (info.colour != Colour::grey && info.colour != Colour::palette)
    return refuse("it has colours");
  if (info.size() != size)
    return Status::bad("it is " + std::to_string(info.width) + " x " + std::to_string(info.height) +
                       " pixels, the image " + std::to_string(size.width) + " x " +
                       std::to_string(size.height));
  return check_pixels(size, limits);
}

/// Stores the values of a pass's row at their places, which are `step` values apart.
void place(const std::uint8_t* row, int count, bool is_16, std::uint16_t* to, int step) {
  if (is_16)
    for (int n = 0; n < count; ++n)
      to[n * step] = static_cast<std::uint16_t>(row[2 * n] << 8 | row[2 * n + 1]);
  else if (step == 1)
    std::copy_n(row, count, to);
  else
    for (int n = 0; n < count; ++n) to[n * step] = row[n];
}

/// Reads all values of a mask whose header is `info`. `row` is scratch with 2 bytes for each pixel
/// of a row.
Status read_values(std::span<const std::byte> encoded, const PngInfo& info, Libpng& libpng,
                   std::uint16_t* values, std::uint8_t* row) {
  const Libpng::End at_end{libpng};
  if (Status opened = libpng.open(encoded); !opened.is_ok()) return opened;
  if (Status started = libpng.start_values(); !started.is_ok()) return started;
  for (const PngPass& pass : png_passes(info.interlaced)) {
    const int columns = pass.columns(info.width);
    if (columns <= 0) continue;
    for (int y = pass.top; y < info.height; y += pass.step_y) {
      if (Status read = libpng.read_row(row); !read.is_ok()) return read;
      const std::ptrdiff_t first = std::ptrdiff_t{y} * info.width + pass.left;
      place(row, columns, info.bits_per_sample == 16, values + first, pass.step_x);
    }
  }
  return libpng.finish();
}

}  // namespace

MaskDecoder::MaskDecoder(std::shared_ptr<DecodeBudget> budget)
    : budget_(std::move(budget)),
      libpng_(std::make_unique<Libpng>()),
      scratch_(std::make_unique<PixelScratch>()) {}

MaskDecoder::~MaskDecoder() = default;

Status MaskDecoder::decode(std::span<const std::byte> encoded, Size size, MaskView& view) {
  view = {};
  close();
  PngInfo info;
  if (Status read = read_mask_info(encoded, size, budget_->limits(), info); !read.is_ok())
    return read;
  // Memory in addition to the values: libpng's current, previous and resulting row, and our row.
  const auto pixels = static_cast<std::uint64_t>(pixels_of(size));
  const std::uint64_t needed =
      2 * pixels + std::uint64_t{4} * 2 * static_cast<unsigned>(size.width);
  if (Status allowed = check_memory(size, needed, budget_->limits()); !allowed.is_ok())
    return allowed;

  DecodeBudget::Reservation reservation =
      budget_->take(std::max<std::uint64_t>(needed, scratch_->bytes()));
  const std::size_t value_bytes = 2 * static_cast<std::size_t>(pixels);
  std::uint8_t* const memory =
      scratch_->reserve(value_bytes + 2 * static_cast<std::size_t>(size.width));
  auto* const values = reinterpret_cast<std::uint16_t*>(memory);
  Status read = read_values(encoded, info, *libpng_, values, memory + value_bytes);
  reservation_ = std::move(reservation);
  if (read.is_ok())
    view = {values, size};
  else
    close();
  return read;
}

void MaskDecoder::close() {
  scratch_->drop_if_large();
  reservation_ = {};
}

}  // namespace millrace
