// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace millrace::cli {

/// Content of a record's field, for people. One of the two may be empty.
struct FieldText {
  /// "an integer", "text", "bytes", "nothing", "JPEG baseline, 300 x 200 pixels" ...
  std::string type{};
  /// The first values: "3", "\"cat\"", "float32 0.5 1.5", "2 boxes, the first 0 1 9 12" ...
  std::string value{};
};

/// Describes a field by its dtype if `specs` has it; else by its name and length.
FieldText field_text(std::span<const FieldSpec> specs, const Record& record,
                     const RecordField& field);

/// A field of a record, as a trainer sees it.
struct SampleField {
  std::string name{};
  std::uint64_t bytes = 0;
  /// "JPEG baseline, 300 x 200 pixels", "an integer, 3", "text, \"cat\"", "float32 0.5 1.5" ...
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

/// Describes the first record that can be read. Throws the errors of `DatasetReader::read`, except
/// `bad_record`.
SampleRecord look_at_record(const Dataset& dataset);

}  // namespace millrace::cli
