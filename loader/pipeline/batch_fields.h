// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/conversion.h>
#include <millrace/sample_spec.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace millrace {

/// The fields of a batch: as they are made and travel, and as the device has them.
class BatchFields {
 public:
  /// Throws `Error` (`invalid_argument`) that names the option where `conversion` does not fit what
  /// a transform makes.
  /// `added` are the fields of a batch transform.
  BatchFields(const SampleSpec& made, const std::optional<Conversion>& conversion,
              const std::vector<FieldSpec>& added = {});

  /// What is made: the transform's fields in their order, lengths among them, those that
  /// are added, then "index" and "valid" where it has none itself.
  const SampleSpec& made() const { return made_; }
  /// The same fields on the device.
  const SampleSpec& converted() const { return converted_; }
  /// Which of them are the engine's to fill; none where the transform does.
  std::optional<std::size_t> index() const { return index_; }
  std::optional<std::size_t> valid() const { return valid_; }
  /// Which is converted, and which say where its images are flipped and erased and how they are
  /// mixed.
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
