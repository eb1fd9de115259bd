// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/decode_budget.h>
#include <millrace/image_decoder.h>
#include <millrace/runtime.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "command/console/interrupt.h"
#include "command/dataset/bad_records.h"

namespace millrace::cli {

/// Result of making the seek indices of a dataset's images.
struct IndexResult {
  std::uint64_t records = 0;
  std::uint64_t indexed = 0;
  /// Images stored as coefficients, which are read from any point without an index.
  std::uint64_t coefficients = 0;
  /// Images whose decoder does not use an index: libjpeg-turbo, another library, or millrace's own
  /// for progressive JPEGs that have restart markers or little data.
  std::uint64_t others = 0;
  /// Records without a field "image".
  std::uint64_t without_image = 0;
  /// Records that cannot be read or whose image does not decode, in the order of indices.
  std::vector<BadRecord> bad{};
  std::uint64_t image_bytes = 0;
  std::uint64_t index_bytes = 0;
  double seconds = 0;
  bool interrupted = false;
};

/// Makes the seek index of each image and stores all indices beside the dataset's files. The
/// dataset must be opened with checksums. Uses the runtime's workers, and shows progress on stderr.
/// After an interrupt the new file is not stored and an existing one stays. Throws the errors of
/// `HintsWriter` and of `DatasetReader::read`, except `bad_record`.
IndexResult write_index(const std::shared_ptr<const Dataset>& dataset, IndexPoints points,
                        const DecodeLimits& limits, Runtime& runtime, const Interrupt& interrupt);

/// "480 of 500 images (0.8 MB, 1.47% of theirs); 10 without, since coefficients need no index; 8
/// without, since their decoder does not use one; 1 record has no image; 2 records are bad".
std::string index_text(const IndexResult& result);

}  // namespace millrace::cli
