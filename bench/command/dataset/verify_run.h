// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/decode_budget.h>
#include <millrace/runtime.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command/console/interrupt.h"
#include "command/dataset/bad_records.h"

namespace millrace::cli {

/// Depth of the checks on a record.
enum class VerifyDepth : std::uint8_t {
  records,  ///< the record is read
  images,   ///< its image and mask are also decoded
  deep,     ///< the image is also decoded with the stored seek index, or as the restored file
};

/// Result of verifying a dataset.
struct VerifyResult {
  std::uint64_t records = 0;
  std::uint64_t checked = 0;
  /// Bytes of the checked records' fields.
  std::uint64_t bytes = 0;
  /// Records whose stored checksum was compared with their bytes.
  std::uint64_t checksums_compared = 0;
  /// Images that decoded.
  std::uint64_t decoded = 0;
  /// Decoded images with stray bytes, which the decoder skipped.
  std::uint64_t repaired = 0;
  /// Stored seek indices that were verified.
  std::uint64_t indices_verified = 0;
  /// Files that were restored from their coefficients.
  std::uint64_t restored = 0;
  /// A sentence for each file of stored seek indices that has a damaged table.
  std::vector<std::string> damaged_tables{};
  double seconds = 0;
  bool interrupted = false;
  /// In the order of indices.
  std::vector<BadRecord> bad{};
  /// The dataset's fingerprint, and the fingerprint of its records as they are now. Both are
  /// nullopt if the dataset has none. The second is also nullopt if a record was not found or the
  /// run was interrupted.
  std::optional<std::uint64_t> fingerprint{};
  std::optional<std::uint64_t> found_fingerprint{};

  bool is_sound() const {
    return bad.empty() && damaged_tables.empty() &&
           (!found_fingerprint || found_fingerprint == fingerprint);
  }
};

/// Reads all records of a dataset, which must be opened with checksums. Decodes their fields
/// "image" and "mask" within `limits`, as `depth` says, and compares the dataset's fingerprint. A
/// record with a wrong stored seek index is bad. Uses the runtime's workers, and shows progress on
/// stderr. Throws the errors of `DatasetReader::read`, except `bad_record`.
VerifyResult verify(const std::shared_ptr<const Dataset>& dataset, VerifyDepth depth,
                    const DecodeLimits& limits, Runtime& runtime, const Interrupt& interrupt);

}  // namespace millrace::cli
