// SPDX-License-Identifier: Apache-2.0
#pragma once

// Threads and lifetimes: the functions may be called from any thread. Fields are values. The
// returned transforms keep no reference to the dataset.

#include <millrace/dataset.h>
#include <millrace/detail/export.h>
#include <millrace/sample_spec.h>
#include <millrace/transform.h>

#include <memory>
#include <vector>

namespace MILLRACE_API millrace {

/// A field of records that `raw_transform` copies.
struct RawField {
  /// Name, dtype and shape of the field. Records and samples use the same name. For a field of
  /// variable length, `shape[0]` is the maximal length in a sample. Records hold the values one
  /// after the other, little-endian as in the memory of x86 and ARM.
  FieldSpec spec;
  /// Value that fills the rest of a field of variable length, up to the maximal length. The dtype
  /// must be able to hold it.
  double fill = 0;
};

/// Returns the fields that a dataset describes (`Dataset::field_specs`), all with `fill` 0. The
/// caller may change them. Throws `Error` (`invalid_argument`) if the dataset describes no field.
std::vector<RawField> raw_fields(const Dataset& dataset);

/// Copies fields of records unchanged, for tokens, numbers and features; it uses no image library.
///
/// A field of fixed shape is copied. A record without this field, or with another number of bytes
/// in it, is a bad record.
///
/// For a field of variable length, up to `shape[0]` values are copied, and the rest is filled with
/// `fill`. As with any variable field, the sample's field `NAME.length` (uint32) has the number of
/// values. A record with an incomplete value in the field is a bad record. If `fill` is not 0, the
/// sample's field has a fixed shape in the `SampleSpec`, because bytes beyond a variable field's
/// length must be 0.
///
/// Throws `Error` (`invalid_argument`) where `SampleSpec` does, if a field's maximal length is
/// unknown, or if the dtype cannot hold `fill`.
std::shared_ptr<const Transform> raw_transform(const std::vector<RawField>& fields);
/// Does the same for all fields that the dataset describes.
std::shared_ptr<const Transform> raw_transform(const Dataset& dataset);

}  // namespace millrace
