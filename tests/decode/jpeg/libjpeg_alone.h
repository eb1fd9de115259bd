// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/decode_budget.h>
#include <millrace/error.h>
#include <turbojpeg.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "jpeg/decoder/jpeg_decoder.h"
#include "jpeg/libjpeg.h"

/// Skips a test of damaged JPEGs on processors other than x86: there libjpeg-turbo's vector code
/// makes other pixels of absurd coefficients.
#ifdef __x86_64__
#define MILLRACE_NEEDS_LIBJPEG_OF_X86() static_cast<void>(0)
#else
#define MILLRACE_NEEDS_LIBJPEG_OF_X86() \
  GTEST_SKIP() << "needs libjpeg-turbo's pixels of absurd coefficients as on x86"
#endif

namespace millrace::testing {

/// The result of libjpeg-turbo for a whole JPEG, without our own stages.
struct LibjpegAlone {
  /// Status of the pixels, and of reading on to the image's end; bad for warnings, too.
  Status decoded = Status::ok();
  Status checked = Status::ok();
  /// Rows of RGB without gaps, also after warnings; empty after an error.
  std::vector<std::uint8_t> pixels{};
};

inline LibjpegAlone decode_by_libjpeg_alone(std::span<const std::byte> encoded) {
  LibjpegAlone made;
  Libjpeg libjpeg(DecodeLimits().max_scan_pixels);
  made.decoded = libjpeg.open(encoded);
  Size size;
  if (made.decoded.is_ok()) made.decoded = libjpeg.start();
  if (made.decoded.is_ok()) {
    const jpeg_decompress_struct& image = libjpeg.image();
    size = {static_cast<int>(image.output_width), static_cast<int>(image.output_height)};
    std::vector<std::uint8_t> row(std::size_t{image.output_width} *
                                  static_cast<std::size_t>(image.output_components));
    made.decoded = libjpeg.read(image.output_height, row.data(), 0);
  }
  made.checked = made.decoded;
  if (made.checked.is_ok()) made.checked = libjpeg.finish();
  libjpeg.end();

  if (size.width == 0) return made;
  made.pixels.resize(static_cast<std::size_t>(size.width) * 3 *
                     static_cast<std::size_t>(size.height));
  const std::unique_ptr<void, int (*)(void*)> turbo(tjInitDecompress(), tjDestroy);
  if (tjDecompress2(turbo.get(), reinterpret_cast<const unsigned char*>(encoded.data()),
                    encoded.size(), made.pixels.data(), 0, 0, 0, TJPF_RGB, 0) != 0 &&
      tjGetErrorCode(turbo.get()) != TJERR_WARNING)
    made.pixels.clear();
  return made;
}

/// Compares the stages' decode of a region of an opened image, if they take it, with libjpeg-turbo
/// alone. Returns the difference in words. A region that does not reach the image's last rows may
/// be valid in a corrupt image. A seek index that is used is kept up to date.
inline std::string difference_of_decode(JpegDecoder& decoder, const LibjpegAlone& alone,
                                        const Region& region,
                                        std::vector<std::byte>* index = nullptr) {
  const bool is_whole = region == Region{0, 0, decoder.header().width, decoder.header().height};
  PixelView view;
  const Status status = decoder.decode(region, view);
  if (const auto noted = decoder.extended_index(); index != nullptr && !noted.empty())
    index->assign(noted.begin(), noted.end());
  if (is_whole && status.reason() != alone.decoded.reason())
    return "\"" + status.reason() + "\", not \"" + alone.decoded.reason() + "\"";
  if (!std::string(decoder.header().decoder).starts_with("millrace")) return "";
  if (!status.is_ok()) return "bad without a look at libjpeg: " + status.reason();
  if (alone.pixels.empty()) return "";
  const auto stride = static_cast<std::size_t>(decoder.header().width) * 3;
  for (int row = 0; row < region.height; ++row) {
    const std::uint8_t* ours = view.pixels + static_cast<std::size_t>(row) * view.stride;
    const std::uint8_t* theirs = alone.pixels.data() +
                                 static_cast<std::size_t>(region.y + row) * stride +
                                 static_cast<std::size_t>(region.x) * 3;
    if (!std::equal(ours, ours + static_cast<std::size_t>(region.width) * 3, theirs))
      return "row " + std::to_string(region.y + row) + " differs in region " +
             std::to_string(region.width) + " x " + std::to_string(region.height) + " at (" +
             std::to_string(region.x) + ", " + std::to_string(region.y) + ")";
  }
  return "";
}

/// Does the same for an image that it opens, with an index or without.
inline std::string difference_from_libjpeg(JpegDecoder& decoder, std::span<const std::byte> encoded,
                                           const LibjpegAlone& alone, const Region& region,
                                           std::vector<std::byte>* index = nullptr,
                                           IndexPoints points = IndexPoints::tiles) {
  if (!decoder.open(encoded).is_ok()) return "";
  if (index != nullptr) decoder.use_index(*index, std::nullopt, points);
  return difference_of_decode(decoder, alone, region, index);
}

/// Does the same for a region that is decoded interleaved with one of the previous call's image.
inline std::string difference_in_turn(std::span<const std::byte> encoded, const LibjpegAlone& alone,
                                      const Region& region, std::vector<std::byte> index) {
  static std::vector<std::byte> other;
  static JpegDecoder neighbour;
  static JpegDecoder decoder;
  const std::vector<std::byte> before = std::exchange(other, {encoded.begin(), encoded.end()});
  if (!decoder.open(encoded).is_ok() || !neighbour.open(before).is_ok()) return "";
  decoder.use_index(index);
  const Size size = neighbour.header().size();
  if (decoder.begin_decode(region) && neighbour.begin_decode({0, 0, size.width, size.height}))
    decoder.decode_interleaved(neighbour);
  PixelView view;
  (void)neighbour.decode({0, 0, size.width, size.height}, view).is_ok();
  return difference_of_decode(decoder, alone, region);
}

/// Does the same for a check of the whole image.
inline std::string difference_of_check(JpegDecoder& decoder, std::span<const std::byte> encoded,
                                       const LibjpegAlone& alone) {
  if (!decoder.open(encoded).is_ok()) return "";
  const Status status = decoder.check();
  if (status.reason() == alone.checked.reason()) return "";
  return "checked: \"" + status.reason() + "\", not \"" + alone.checked.reason() + "\"";
}

}  // namespace millrace::testing
