// SPDX-License-Identifier: Apache-2.0
#pragma once

// Threads and lifetimes: a `SampleSpec` is a value that does not change once it is made, so all its
// functions may be called from any thread at once. References that it gives are valid as long as
// it.

#include <millrace/detail/export.h>
#include <millrace/tensor.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace MILLRACE_API millrace {

/// One named field of a sample.
struct FieldSpec {
  std::string name;
  DType dtype = DType::uint8;
  /// Extents of one sample's field, at their largest. In a batch the field's shape is this with the
  /// batch size outermost.
  Shape shape;
  /// The outermost extent differs from sample to sample (up to `shape[0]`). The field's length then
  /// travels as a further field `NAME.length` (uint32, one per sample), and what lies beyond the
  /// length is zero.
  bool variable = false;
  /// The name of an image field whose horizontal flips are left to the device: this one (uint8, a
  /// scalar) says per sample whether there is one. Such an image must be converted
  /// (`PipelineOptions::conversion`); a pipeline that does not is refused.
  std::string flips{};
  /// The same for an image field whose boxes are erased, or which is mixed with others of the
  /// batch, on the device: int32 [8] and [5], as `MixWork` describes them.
  std::string erases{};
  std::string mixes{};

  friend bool operator==(const FieldSpec& a, const FieldSpec& b) = default;
};

/// The named fields of a sample, in the order in which they lie in a slot. The label is a field
/// like the others.
class SampleSpec {
 public:
  SampleSpec() = default;
  /// Adds the `NAME.length` field of each variable field at the end. Throws `Error`
  /// (`invalid_argument`) if there are no fields, a name is empty or comes twice, an extent is 0, a
  /// field has more than 2^40 bytes, a variable field is a scalar, or `flips`,
  /// `erases` or `mixes` name no other field.
  explicit SampleSpec(std::vector<FieldSpec> fields);

  const std::vector<FieldSpec>& fields() const { return fields_; }
  /// Position of a field. Throws `Error` (`not_found`, the message lists the names there are).
  std::size_t index_of(std::string_view name) const;
  /// Position of the `NAME.length` field of variable field `field`. Throws `Error`
  /// (`invalid_argument`) for a fixed field.
  std::size_t length_of(std::size_t field) const;
  /// Bytes of one sample's fields, without padding.
  std::size_t bytes_per_sample() const;

 private:
  std::vector<FieldSpec> fields_;
  std::vector<std::size_t> length_fields_;
};

}  // namespace millrace
