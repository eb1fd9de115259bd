// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace millrace::testing {

using Bytes = std::vector<std::byte>;

/// 8-bit pixels; rows are contiguous.
struct Image {
  int width = 0;
  int height = 0;
  int channels = 3;
  std::vector<std::uint8_t> pixels;
};

/// Settings for writing a JPEG.
struct Encoding {
  std::string name = "4:2:0";
  /// Sampling factors of the first component, with the others at 1; or of all components.
  std::array<int, 4> h{2, 1, 1, 1};
  std::array<int, 4> v{2, 1, 1, 1};
  enum class Scans {
    one,
    per_component,
    progressive,
    progressive_incomplete,
    per_coefficient
  } scans = Scans::one;
  bool arithmetic = false;
  int restart_rows = 0;
  int restart_mcus = 0;
  int quality = 90;
  /// Use Huffman tables made for this image. Progressive images always have them.
  bool optimised = false;
  /// Stored as RGB, for three channels.
  bool stored_as_rgb = false;
  /// Stored as YCCK, for four channels.
  bool stored_as_ycck = false;
};

/// Kinds of three-channel JPEG that differ in how libjpeg decodes parts of them.
std::vector<Encoding> encodings();

/// Noise over gradients: every pixel and every colour differs from its neighbours.
Image noise(int width, int height, unsigned seed, int channels = 3);

Bytes encode(const Image& image, const Encoding& encoding);

/// A scan of a progressive JPEG (T.81, G.1): components, first and last coefficient, Ah, Al.
struct Scan {
  std::vector<int> components;
  int first = 0;
  int last = 0;
  int high = 0;
  int low = 0;
};

/// Writes the coefficients of a JPEG as a progressive one. An empty script is libjpeg's usual one.
Bytes progressive(const Bytes& encoded, const std::vector<Scan>& script, int restart_mcus = 0);

/// Returns a JPEG without its segments of one kind (for example 0xC4, DHT) before the first scan.
Bytes without(const Bytes& encoded, int marker);

/// Offset of the first scan's data.
std::size_t first_scan(const Bytes& encoded);

/// 40 JPEGs of eight encodings: intact, without DHT, without DQT, with only the first DQT, and
/// truncated. The decoder's substitute for a missing table shows in the pixels or the reason.
std::vector<Bytes> mixed_jpegs();

/// Decodes the whole image by TurboJPEG's `tjDecompress2` with flags 0: RGB, or CMYK for four
/// components, at 1/`reduction` of its resolution.
Image reference_decode(const Bytes& encoded, int reduction = 1);

Bytes read_file(const std::filesystem::path& path);

/// All JPEG files below a folder, sorted.
std::vector<std::filesystem::path> jpeg_files(const std::filesystem::path& folder);

}  // namespace millrace::testing
