// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/image_decoder.h>

#include <cstdint>
#include <optional>
#include <string>

#include "command/dataset/inspect_survey.h"

namespace millrace::cli {

std::string to_text(const Dataset& dataset, const Survey& survey);
std::string to_json(const Dataset& dataset, const Survey& survey);

/// All details of one record.
struct RecordView {
  Record record;
  std::string key{};
  std::optional<StoredRecord> stored{};
  /// Why the record's bytes are corrupt; empty if its checksum matches.
  std::string fault{};
  /// Header of the field "image", or why it cannot be read.
  std::optional<ImageInfo> image{};
  std::string no_image{};
};

/// A record's label and class for people: "3 (cat)"; "none".
std::string label_text(const Dataset& dataset, const Record& record);
std::string to_text(const Dataset& dataset, const RecordView& view);
std::string to_json(const Dataset& dataset, const RecordView& view);

}  // namespace millrace::cli
