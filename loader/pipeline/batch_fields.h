// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/conversion.h>
#include <millrace/sample_spec.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace millrace {

/// Fields of a batch: as workers make and copy them, and as the device has them after conversion.
class BatchFields {
 public:
  /// `added` are the fields of a batch transform. Throws `Error` (`invalid_argument`) with the
  /// option's name if `conversion` does not fit the transform's fields.
  BatchFields(const SampleSpec& made, const std::optional<Conversion>& conversion,
              const std::vector<FieldSpec>& added = {});

  /// The fields on the host: the transform's in their order, with their lengths, then the added
  /// ones. "index" and "valid" follow if the transform does not have them.
  const SampleSpec& made() const { return made_; }
  /// The same fields on the device.
  const SampleSpec& converted() const { return converted_; }
  /// Fields that the engine fills; nullopt if the transform has the field itself.
  std::optional<std::size_t> index() const { return index_; }
  std::optional<std::size_t> valid() const { return valid_; }
  /// The field to convert, and the fields that say how its images are flipped, erased and mixed.
  /// Nullopt where the batch does not have the field.
  std::optional<std::size_t> image() const { return image_; }
  std::optional<std::size_t> flips() const { return flips_; }
  std::optional<std::size_t> erases() const { return erases_; }
  std::optional<std::size_t> mixes() const { return mixes_; }

 private:
  SampleSpec made_;
  SampleSpec converted_;
  std::optional<std::size_t> index_;
  std::optional<std::size_t> valid_;
  std::optional<std::size_t> image_;
  std::optional<std::size_t> flips_;
  std::optional<std::size_t> erases_;
  std::optional<std::size_t> mixes_;
};

}  // namespace millrace
