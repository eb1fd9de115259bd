// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>

#include <cstdint>
#include <string>
#include <vector>

namespace millrace::cli {

/// A field of a record, as a trainer sees it.
struct SampleField {
  std::string name{};
  std::uint64_t bytes = 0;
  /// "JPEG baseline, 300 x 200 pixels", "an integer, 3", "text, \"cat\"", "12 float32 values" ...
  std::string holds{};
};

/// The fields of one record.
struct SampleRecord {
  std::uint64_t index = 0;
  std::string key{};
  /// Empty if the first records cannot be read.
  std::vector<SampleField> fields{};
  /// Reasons why an image transform cannot train on such records, a sentence each.
  std::vector<std::string> missing{};
};

/// Describes a field with the name and length of an annotation: "2 boxes, the first 0 1 9 12", "2
/// integers, the first 4", "2 x 17 keypoints, the first 20 31 2", or a mask's kind and size. Empty
/// for all other fields.
std::string annotation_text(const Record& record, const RecordField& field);

/// Describes the first record that can be read. Throws the errors of `DatasetReader::read`, except
/// `bad_record`.
SampleRecord look_at_record(const Dataset& dataset);

}  // namespace millrace::cli
