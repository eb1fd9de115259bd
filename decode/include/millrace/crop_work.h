// SPDX-License-Identifier: Apache-2.0
// A kernel that makes resized crops from stored coefficients and from JPEGs. It is public for
// authors of devices; a trainer does not need it.
//
// Threads: `run_on_host` may be called on any thread.
// Lifetimes: the memory that a `CropWork` points to must stay valid until the work is done.
#pragma once

#include <millrace/conversion_work.h>
#include <millrace/crop_scan.h>
#include <millrace/detail/export.h>

#include <cstddef>
#include <cstdint>

namespace MILLRACE_API millrace {

/// Begin of a packed crop: one sample's input. The parts that it refers to follow, at offsets from
/// its begin that are multiples of 4. A crop has either tiles of the record form `coefficients`
/// (decode/coefficients/FORMAT.md) or a JPEG's entropy-coded data (`scan`). Their bytes are
/// untrusted. All other numbers were checked when the crop was packed.
struct CropHeader {
  /// A component's tiles that the crop needs.
  struct Plane {
    /// In tiles of 8 blocks, and in rows of blocks, of the whole image.
    std::int32_t first_tile = 0;
    std::int32_t tiles = 0;
    std::int32_t first_row = 0;
    std::int32_t rows = 0;
    /// Offset of a u32 for each row: the row's offset. A row has the end of each tile as u32,
    /// counted from the row's first tile, and then the tiles. 0 if the crop has a scan.
    std::uint32_t rows_at = 0;
    /// Quantisation steps, row by row.
    std::uint8_t steps[64] = {};
  };
  /// Weights of a resampling along one axis, in units of 2^-22.
  struct Axis {
    /// Offset of an i32 for each pixel: the source pixel of its first weight, counted from the
    /// crop's first one.
    std::uint32_t begins_at = 0;
    /// Offset of the weights, i32: `taps` for each pixel, which begin `stride` weights apart.
    /// Weights after a pixel's own ones are 0.
    std::uint32_t weights_at = 0;
    std::int32_t taps = 0;
    std::int32_t stride = 0;
  };

  /// Limit on the crop's width before it is resized.
  static constexpr std::int32_t most_width = 4096;

  /// Bytes of the whole packed crop.
  std::uint32_t bytes = 0;
  /// 1 (grey) or 3 (Y, Cb, Cr).
  std::int32_t components = 1;
  /// Pixels per sample of chroma: 1 or 2.
  std::int32_t across = 1;
  std::int32_t down = 1;
  /// Size of the whole image's planes of chroma.
  std::int32_t chroma_width = 0;
  std::int32_t chroma_height = 0;
  /// The part of the image that is resized, in its pixels.
  std::int32_t x = 0;
  std::int32_t y = 0;
  std::int32_t width = 0;
  std::int32_t height = 0;
  /// Whether the columns are resized before the rows. The result of the first pass is rounded to 8
  /// bits.
  std::int32_t vertical_first = 0;
  Axis horizontal;
  Axis vertical;
  Plane planes[3];
  CropScan scan;
};

/// Arguments of a kernel that makes 8-bit RGB images. It expands tiles or decodes a scan. It
/// transforms the coefficients to samples, makes the pixels that libjpeg-turbo makes, and resizes
/// as Pillow does, to the bit. A flip is part of the packed weights.
struct CropWork {
  static constexpr const char* kernel = "crop";

  /// The samples' inputs: packed crops, or the images themselves.
  const std::byte* inputs = nullptr;
  /// One value per sample: the place of its input, in units of `input_unit` bytes from `inputs`, or
  /// `no_input`.
  const std::uint32_t* offsets = nullptr;
  /// One value per sample: 1 if its input is a packed crop, 0 if it is the image.
  const std::uint8_t* packed = nullptr;
  /// [samples, height, width, 3]. Must not overlap the inputs.
  std::uint8_t* images = nullptr;
  /// One value per sample, or null. Becomes 1 if tiles are corrupt, segments of a scan are
  /// doubtful, the input is missing or the scratch is too small. The sample's image is then
  /// unspecified.
  std::uint8_t* marks = nullptr;
  /// Scratch of all samples, one behind the other, aligned to 256 bytes. Its content is
  /// unspecified.
  std::byte* scratch = nullptr;
  std::size_t scratch_bytes = 0;
  /// At most `most_samples`.
  std::size_t samples = 0;
  std::int32_t height = 0;
  std::int32_t width = 0;
  /// Threads that help with `run_on_host`; null = the calling thread works alone. They must outlive
  /// the work.
  HostWorkers* workers = nullptr;

  /// Alignment of the inputs in memory.
  static constexpr std::size_t input_unit = 16;
  static constexpr std::uint32_t no_input = UINT32_MAX;
  static constexpr std::size_t most_samples = 64;

  /// Does the work in host memory: the reference for all devices.
  void run_on_host() const;
};

}  // namespace millrace
