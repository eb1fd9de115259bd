// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/decode_budget.h>
#include <millrace/image_decoder.h>
#include <millrace/runtime.h>

#include <cstdint>
#include <memory>
#include <string>

#include "console/interrupt.h"

namespace millrace::cli {

/// What became of making the seek index of a dataset's images.
struct IndexResult {
  std::uint64_t records = 0;
  std::uint64_t indexed = 0;
  /// Images that libjpeg-turbo decodes, which no index helps.
  std::uint64_t others = 0;
  /// Records that cannot be read or have no image that decodes.
  std::uint64_t bad = 0;
  std::uint64_t image_bytes = 0;
  std::uint64_t index_bytes = 0;
  double seconds = 0;
  bool interrupted = false;
};

/// Reads all images of a dataset that was opened with checksums and stores their seek index beside
/// its files, on the runtime's workers; shows its progress on stderr. Where it was interrupted, the
/// file that was begun is not stored, and what was there before stays. Throws what
/// `DatasetReader::read` throws that is no `bad_record`, and as `NotesWriter`.
IndexResult write_index(const std::shared_ptr<const Dataset>& dataset, IndexPoints points,
                        const DecodeLimits& limits, Runtime& runtime, const Interrupt& interrupt);

/// "490 of 500 images (0.8 MB, 1.47% of theirs); 8 need none, as other decoders take them; 2 bad,
/// as `millrace verify` says".
std::string index_text(const IndexResult& result);

}  // namespace millrace::cli
