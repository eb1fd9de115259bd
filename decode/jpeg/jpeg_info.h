// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/image_decoder.h>

#include <cstddef>
#include <span>

namespace millrace {

/// What the segments before a JPEG's first scan say of it (ITU-T T.81), without anything decoded.
/// `quality` is told where the table of the first component is the one that `jpeg_set_quality`
/// would have made: each step within 1 and all of them together within 16 of the Independent JPEG
/// Group's (jcparam.c: Annex K's example table, scaled by 5000 / quality below 50 and by
/// 200 - 2 quality from there, in percent). Other encoders' tables have no quality.
struct JpegInfo : ImageInfo {
  enum class Process { baseline, extended, progressive, lossless, hierarchical };

  Process process = Process::baseline;
  /// Arithmetic coding in place of Huffman's.
  bool arithmetic = false;
};

/// Reads them. Bad, with the reason, where the segments are damaged or cut short before the first
/// scan; `info` is then unspecified. The bytes begin with a JPEG's marker.
Status read_jpeg_info(std::span<const std::byte> encoded, JpegInfo& info);

}  // namespace millrace
