// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/image_decoder.h>

#include <cstddef>
#include <span>

namespace millrace {

/// The properties that the segments before a JPEG's first scan state (ITU-T T.81), without
/// decoding. `quality` is known if the first component's table is one that `jpeg_set_quality`
/// makes: each step within 1, and the sum of all within 16, of the Independent JPEG Group's table.
/// That table (jcparam.c) is Annex K's example table, scaled by 5000 / quality percent below a
/// quality of 50, and by 200 - 2 quality percent from 50 on. Tables of other encoders have no
/// quality.
struct JpegInfo : ImageInfo {
  enum class Process { baseline, extended, progressive, lossless, hierarchical };

  Process process = Process::baseline;
  /// Arithmetic coding instead of Huffman's.
  bool arithmetic = false;
};

/// Reads the properties. Returns a bad status, with the reason, if the segments are corrupt or
/// truncated before the first scan; `info` is then unspecified. The bytes must begin with a JPEG's
/// marker.
Status read_jpeg_info(std::span<const std::byte> encoded, JpegInfo& info);

}  // namespace millrace
