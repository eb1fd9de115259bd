// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/conversion.h>
#include <millrace/sample_spec.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace millrace {

/// Fields of a batch in two forms: on the host, and on the device after conversion.
class BatchFields {
 public:
  /// `added` are the fields that a batch transform adds. Throws `Error` (`invalid_argument`) with
  /// the option's name if `conversion` does not fit the transform's fields.
  BatchFields(const SampleSpec& made, const std::optional<Conversion>& conversion,
              const std::vector<FieldSpec>& added = {});

  /// Fields on the host: the transform's fields and their length fields, in the transform's order,
  /// then the added fields. "index" and "valid" follow if the transform does not define them.
  const SampleSpec& made() const { return made_; }
  /// The same fields on the device.
  const SampleSpec& converted() const { return converted_; }
  /// Indices of the fields that the engine fills; nullopt if the transform defines the field
  /// itself.
  std::optional<std::size_t> index() const { return index_; }
  std::optional<std::size_t> valid() const { return valid_; }
  /// Indices of the field to convert and of the fields that say how its images are flipped, erased
  /// and mixed. Nullopt if the batch does not have such a field.
  std::optional<std::size_t> image() const { return image_; }
  std::optional<std::size_t> flip_field() const { return flip_field_; }
  std::optional<std::size_t> erase_field() const { return erase_field_; }
  std::optional<std::size_t> mix_field() const { return mix_field_; }

 private:
  SampleSpec made_;
  SampleSpec converted_;
  std::optional<std::size_t> index_;
  std::optional<std::size_t> valid_;
  std::optional<std::size_t> image_;
  std::optional<std::size_t> flip_field_;
  std::optional<std::size_t> erase_field_;
  std::optional<std::size_t> mix_field_;
};

}  // namespace millrace
