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

#include "console/interrupt.h"
#include "dataset/distribution.h"
#include "dataset/inspect_training.h"

namespace millrace::cli {

/// A record of which nothing more is known than this.
struct UnreadRecord {
  std::uint64_t index = 0;
  std::string key{};
  std::string reason{};
};

/// What is in a dataset, by its records' headers.
struct Survey {
  std::uint64_t records = 0;
  std::uint64_t looked_at = 0;
  /// Whether `interrupt` ended it early.
  bool interrupted = false;
  double seconds = 0;
  /// Of the records that were looked at: bytes of all fields.
  std::uint64_t bytes = 0;
  /// How many records have a label, or a box of it.
  std::map<std::int64_t, std::uint64_t> labels{};

  /// Of those with a field "image".
  Distribution image_bytes{};
  /// Of those whose header could be read.
  std::uint64_t images = 0;
  Distribution width{};
  Distribution height{};
  Distribution shorter_side{};
  Distribution pixels{};
  /// Of those whose quality is known.
  Distribution quality{};
  std::map<std::string, std::uint64_t> chroma{};
  /// "baseline", "progressive, arithmetic" ...
  std::map<std::string, std::uint64_t> scan_types{};
  /// `ImageHeader::decoder`; "none" if it cannot be decoded.
  std::map<std::string, std::uint64_t> decoders{};
  /// 0 = none.
  std::map<int, std::uint64_t> orientations{};

  /// One of the first.
  SampleRecord sample{};
  /// Records that could not be read, or whose image could not, in the order of their numbers.
  std::vector<UnreadRecord> unread{};
};

/// The label of a record; nothing where it has none.
std::optional<std::int64_t> label_of(const Record& record);

/// Looks at the headers of all records (`sample` = 0) or of `sample` ones that are spread evenly,
/// on the runtime's workers; shows its progress on stderr. No pixel is decoded. Throws what
/// `DatasetReader::read` throws that is no `bad_record`.
Survey survey(const std::shared_ptr<const Dataset>& dataset, std::uint64_t sample, Runtime& runtime,
              const Interrupt& interrupt);

}  // namespace millrace::cli
