// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>
#include <millrace/error.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace MILLRACE_API millrace {

/// What the segments before a JPEG's first scan say of it (ITU-T T.81), without anything decoded.
struct JpegInfo {
  enum class Process { baseline, extended, progressive, lossless, hierarchical };

  int width = 0;
  int height = 0;
  int components = 0;
  int bits_per_sample = 8;
  Process process = Process::baseline;
  /// Arithmetic coding in place of Huffman's.
  bool arithmetic = false;
  /// "4:4:4", "4:2:2", "4:2:0", "4:4:0", "4:1:1", "4:1:0"; "gray" for one component; else the
  /// components' sampling factors, as "2x2 1x2 1x1".
  std::string chroma;
  /// 1 to 100, as libjpeg's `jpeg_set_quality` takes it, where the table of the first component is
  /// the one that this would have made: each step within 1 and all of them together within 16 of
  /// the Independent JPEG Group's (jcparam.c: Annex K's example table, scaled by 5000 / quality
  /// below 50 and by 200 - 2 quality from there, in percent). Nothing for other encoders' tables.
  std::optional<int> quality;
  /// Orientation by EXIF, 1 to 8; nothing where there is none.
  std::optional<int> orientation;
  /// Blocks (MCUs) between restart markers; 0 = no restart markers.
  int restart_interval = 0;
  /// Bytes before the first scan's data.
  std::size_t header_bytes = 0;
};

const char* to_string(JpegInfo::Process process);

/// Reads them. Bad, with the reason, for what is no JPEG or whose segments are damaged or cut short
/// before the first scan; `info` is then unspecified. Images that `JpegDecoder` does not decode
/// (12-bit, lossless) are not bad here.
Status read_jpeg_info(std::span<const std::byte> encoded, JpegInfo& info);

}  // namespace millrace
