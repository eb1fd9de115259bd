// SPDX-License-Identifier: Apache-2.0
// A kernel that makes resized crops from stored coefficients and from JPEGs. It is for code that
// implements `Device`; trainers do not need it.
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

/// Header of a packed crop, which is the input of one sample. The other parts follow it. Their
/// offsets count in bytes from the start of the header and are multiples of 4. A crop has either
/// tiles of the record form `coefficients` (decode/coefficients/FORMAT.md) or a JPEG's
/// entropy-coded data (`scan`). The bytes of tiles and scan are untrusted. The packer has checked
/// all other numbers.
struct CropHeader {
  /// The tiles of one component that the crop needs.
  struct Plane {
    /// Range of these tiles in the whole image. Columns count in tiles of 8 blocks, rows in blocks.
    std::int32_t first_tile = 0;
    std::int32_t tiles = 0;
    std::int32_t first_row = 0;
    std::int32_t rows = 0;
    /// Offset of a table that has the offset of each row (u32); 0 if the crop has a scan. A row
    /// begins with the end offset of each of its tiles (u32). These count from the data of the
    /// row's first tile. The data of all its tiles follow them.
    std::uint32_t rows_at = 0;
    /// Quantisation steps, row by row.
    std::uint8_t steps[64] = {};
  };
  /// Weights of a resampling along one axis, in units of 2^-22.
  struct Axis {
    /// Offset of a list that has, for each output pixel, the source pixel of its first weight
    /// (i32). Source pixels count from the crop's first pixel.
    std::uint32_t begins_at = 0;
    /// Offset of the weights (i32), `taps` for each output pixel. The weights of adjacent pixels
    /// begin `stride` weights apart. If a pixel has fewer weights, zeros follow them.
    std::uint32_t weights_at = 0;
    std::int32_t taps = 0;
    std::int32_t stride = 0;
  };

  /// Limit on the crop's width before it is resized.
  static constexpr std::int32_t max_width = 4096;

  /// Size of the whole packed crop.
  std::uint32_t bytes = 0;
  /// 1 (grey) or 3 (Y, Cb, Cr).
  std::int32_t components = 1;
  /// Pixels per chroma sample along each axis: 1 or 2.
  std::int32_t across = 1;
  std::int32_t down = 1;
  /// Size in samples of the whole image's chroma planes.
  std::int32_t chroma_width = 0;
  std::int32_t chroma_height = 0;
  /// Whether the image is made with rows and columns exchanged. `x`, `y`, `width`, `height`,
  /// `vertical_first` and both axes then describe the exchanged image; `across`, `down`, the
  /// chroma's size and `planes` describe the stored one.
  std::int32_t exchanged = 0;
  /// Region of the image that is resized, in pixels.
  std::int32_t x = 0;
  std::int32_t y = 0;
  std::int32_t width = 0;
  std::int32_t height = 0;
  /// 1: the vertical pass, which changes the height, runs before the horizontal one; 0: after it.
  /// The result of the first pass is rounded to 8 bits.
  std::int32_t vertical_first = 0;
  Axis horizontal;
  Axis vertical;
  Plane planes[3];
  CropScan scan;
};

/// Arguments of a kernel that makes 8-bit RGB images. The kernel expands tiles or decodes a scan,
/// applies the inverse DCT, makes RGB pixels from the components, and resizes them. The result
/// equals that of libjpeg-turbo and Pillow to the bit. The weights in a packed crop already contain
/// flips, and the mirroring by an EXIF orientation.
struct CropWork {
  static constexpr const char* kernel = "crop";

  /// Inputs of the samples: packed crops, or finished images.
  const std::byte* inputs = nullptr;
  /// One value per sample: the offset of its input from `inputs`, in units of `input_unit` bytes,
  /// or `no_input`.
  const std::uint32_t* offsets = nullptr;
  /// One value per sample: 1 if its input is a packed crop, 0 if it is a finished image.
  const std::uint8_t* packed = nullptr;
  /// [samples, height, width, 3]. Must not overlap the inputs.
  std::uint8_t* images = nullptr;
  /// One value per sample, or null. The kernel sets a value to 1 if it cannot make the sample's
  /// image; the image is then unspecified. It does not write the other values. The reasons are
  /// corrupt tiles, invalid codes in a scan, a segment that does not end as `CropScan::Segment`
  /// says, a missing input, and too little scratch.
  std::uint8_t* marks = nullptr;
  /// Scratch memory: one part for each packed crop, in the order of the samples, each aligned to
  /// 256 bytes. Its content is unspecified. `scratch_bytes` is the size of the whole memory.
  std::byte* scratch = nullptr;
  std::size_t scratch_bytes = 0;
  /// At most `max_samples`.
  std::size_t samples = 0;
  std::int32_t height = 0;
  std::int32_t width = 0;
  /// Threads that help with `run_on_host`. Null = the calling thread works alone. The object must
  /// outlive the work.
  HostWorkers* workers = nullptr;

  /// Alignment of the inputs in memory.
  static constexpr std::size_t input_unit = 16;
  static constexpr std::uint32_t no_input = UINT32_MAX;
  static constexpr std::size_t max_samples = 64;

  /// Does the work in host memory. It is the reference for all devices.
  void run_on_host() const;
};

}  // namespace millrace
