// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/image_decoder.h>
#include <millrace/runtime.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command/console/interrupt.h"
#include "command/dataset/distribution.h"
#include "command/dataset/inspect_training.h"

namespace millrace::cli {

/// A record that could not be read.
struct UnreadRecord {
  std::uint64_t index = 0;
  std::string key{};
  std::string reason{};
};

/// Statistics of a dataset from its records' headers.
struct Survey {
  std::uint64_t records = 0;
  std::uint64_t looked_at = 0;
  /// Whether `interrupt` ended it early.
  bool interrupted = false;
  double seconds = 0;
  /// Bytes of all fields of the inspected records.
  std::uint64_t bytes = 0;
  /// Number of records by label. A record without a class counts for each label of its boxes.
  std::map<std::int64_t, std::uint64_t> labels{};

  /// Image sizes of the records with a field "image".
  Distribution image_bytes{};
  /// Images whose header could be read.
  std::uint64_t images = 0;
  Distribution width{};
  Distribution height{};
  Distribution shorter_side{};
  Distribution pixels{};
  /// JPEG qualities, where known.
  Distribution quality{};
  std::map<std::string, std::uint64_t> chroma{};
  /// "baseline", "progressive, arithmetic" ...
  std::map<std::string, std::uint64_t> scan_types{};
  /// By `ImageHeader::decoder`; "none" = it cannot be decoded.
  std::map<std::string, std::uint64_t> decoders{};
  /// By EXIF orientation; 0 = none.
  std::map<int, std::uint64_t> orientations{};

  /// One of the first records.
  SampleRecord sample{};
  /// Records that could not be read, or whose image could not, in the order of indices.
  std::vector<UnreadRecord> unread{};
};

/// Whether a field of 8 bytes may be an integer: `specs` says so, or does not have the field.
bool may_be_integer(std::span<const FieldSpec> specs, std::string_view field);
/// The label of a record whose dataset has these `specs`; nullopt if it has no integer as label.
std::optional<std::int64_t> label_of(std::span<const FieldSpec> specs, const Record& record);

/// Reads the headers of all records (`sample` = 0) or of `sample` records that are spread evenly,
/// on the runtime's workers. Decodes no pixels. Shows progress on stderr. Throws the errors of
/// `DatasetReader::read`, except `bad_record`.
Survey survey(const std::shared_ptr<const Dataset>& dataset, std::uint64_t sample, Runtime& runtime,
              const Interrupt& interrupt);

}  // namespace millrace::cli
