// SPDX-License-Identifier: Apache-2.0
#pragma once

// Threads and lifetimes: a `SampleSpec` is an immutable value; all its functions may be called by
// several threads at the same time. Returned references are valid as long as the object.

#include <millrace/detail/export.h>
#include <millrace/tensor.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace MILLRACE_API millrace {

class DeviceStage;

/// One named field of a sample.
struct FieldSpec {
  std::string name;
  DType dtype = DType::uint8;
  /// Maximal extents of the field in one sample. In a batch the batch size is added as the
  /// outermost extent.
  Shape shape;
  /// Whether the outermost extent differs from sample to sample (up to `shape[0]`). The length is
  /// then a further field `NAME.length` (uint32, one per sample), and bytes beyond the length are
  /// zero.
  bool variable = false;
  /// Name of another field: the images that the device flips horizontally. If it is set, the
  /// described field holds the flags: uint8, a scalar, 1 = flip the sample's image. The image field
  /// must be converted (`PipelineOptions::conversion`); otherwise the pipeline's constructor
  /// throws.
  std::string flipped_image{};
  /// Names of other fields: the images that the device changes. If `erased_image` is set, the
  /// described field holds the numbers of the box that is erased in the image: int32 [8]. If
  /// `mixed_image` is set, it holds the numbers with which pairs of images are mixed: int32 [5].
  /// `MixWork` defines these numbers.
  std::string erased_image{};
  std::string mixed_image{};
  /// Stages that the device runs on this field, in this order, before it erases and mixes images
  /// (`erased_image`, `mixed_image`) and converts them. Workers fill the field with the first
  /// stage's input. A field with stages must be converted; otherwise the pipeline's constructor
  /// throws.
  std::vector<std::shared_ptr<const DeviceStage>> device_stages{};

  friend bool operator==(const FieldSpec& a, const FieldSpec& b) = default;
};

/// The named fields of a sample, in the order of their memory in a slot. The label is a field like
/// the others.
class SampleSpec {
 public:
  SampleSpec() = default;
  /// Adds the `NAME.length` field of each variable field at the end. Throws `Error`
  /// (`invalid_argument`) if `fields` is empty, a name is empty or occurs twice, an extent is 0, or
  /// a field has over 2^40 bytes. Also throws if a variable field is a scalar, or if a set
  /// `flipped_image`, `erased_image` or `mixed_image` does not name another field. Also throws if
  /// two fields have the same value of one of these three, or if such a field has a wrong dtype or
  /// shape.
  explicit SampleSpec(std::vector<FieldSpec> fields);

  const std::vector<FieldSpec>& fields() const { return fields_; }
  /// Position of a field. Throws `Error` (`not_found`; the message lists the names).
  std::size_t index_of(std::string_view name) const;
  /// Position of the `NAME.length` field of variable field `field`. Throws `Error`
  /// (`invalid_argument`) for a fixed field.
  std::size_t length_field_of(std::size_t field) const;
  /// Bytes of one sample's fields, without padding.
  std::size_t bytes_per_sample() const;

 private:
  std::vector<FieldSpec> fields_;
  std::vector<std::size_t> length_fields_;
};

}  // namespace millrace
