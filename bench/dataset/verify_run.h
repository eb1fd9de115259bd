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

#include "console/interrupt.h"

namespace millrace::cli {

struct BadRecord {
  std::uint64_t index = 0;
  std::string key{};
  std::string reason{};
};

/// How much of a record is looked at.
enum class VerifyDepth : std::uint8_t {
  records,  ///< it is read
  images,   ///< its image and mask are decoded, too
  indices,  ///< and once more with the stored seek index, which is proved
};

/// What became of verifying a dataset.
struct VerifyResult {
  std::uint64_t records = 0;
  std::uint64_t checked = 0;
  /// Of the checked records' fields.
  std::uint64_t bytes = 0;
  /// Records that have a checksum, which was compared.
  std::uint64_t compared = 0;
  /// Images that decoded.
  std::uint64_t decoded = 0;
  /// Images of these that have stray bytes, which were skipped.
  std::uint64_t repaired = 0;
  /// Stored seek indices that are right.
  std::uint64_t proved = 0;
  /// A sentence for each file of stored seek indices that has a damaged table.
  std::vector<std::string> damaged_tables{};
  double seconds = 0;
  bool interrupted = false;
  /// In the order of their numbers.
  std::vector<BadRecord> bad{};
  /// The dataset's own, and the one of its records as they are now; neither where the dataset has
  /// none, the second not where a record cannot be found or the run was interrupted.
  std::optional<std::uint64_t> fingerprint{};
  std::optional<std::uint64_t> found_fingerprint{};

  bool is_sound() const {
    return bad.empty() && damaged_tables.empty() &&
           (!found_fingerprint || found_fingerprint == fingerprint);
  }
};

/// Reads all records of a dataset that was opened with checksums, decodes their fields "image" and
/// "mask" within `limits` by `depth`, and compares the dataset's fingerprint, on the runtime's
/// workers; shows its progress on stderr. A record whose stored index is not right is bad. Throws
/// what `DatasetReader::read` throws that is no `bad_record`.
VerifyResult verify(const std::shared_ptr<const Dataset>& dataset, VerifyDepth depth,
                    const DecodeLimits& limits, Runtime& runtime, const Interrupt& interrupt);

}  // namespace millrace::cli
