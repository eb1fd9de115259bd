// SPDX-License-Identifier: Apache-2.0
#pragma once

// Threads and lifetimes: the functions may be called from any thread; fields are values. The
// transform that they give keeps nothing of the dataset.

#include <millrace/dataset.h>
#include <millrace/detail/export.h>
#include <millrace/sample_spec.h>
#include <millrace/transform.h>

#include <memory>
#include <vector>

namespace MILLRACE_API millrace {

/// A field of records that `raw_transform` hands on.
struct RawField {
  /// Its name in records and in samples, its dtype and its shape: of a field whose length varies,
  /// the longest that samples have. Records hold the values one behind the other, as a machine of
  /// x86 or ARM has them in memory.
  FieldSpec spec;
  /// What stands behind the values of a field whose length varies, up to the longest: a number that
  /// the dtype can hold.
  double fill = 0;
};

/// What a dataset says of its fields (`Dataset::field_specs`), all filled with 0, for a caller to
/// change. Throws `Error` (`invalid_argument`) if it says nothing.
std::vector<RawField> raw_fields(const Dataset& dataset);

/// Hands fields of records on as they are, for tokens, numbers and features, and touches no image
/// library. A field of fixed shape is copied: a record that has another number of bytes there, or
/// no such field, is a bad one. Of a field whose length varies the first `shape[0]` values are
/// copied, and the rest is filled with `fill`; how many there are is in the sample's field
/// `NAME.length` (uint32), as with any variable field. A record with a part of a value there is a
/// bad one. With a `fill` other than 0 the sample's field counts as one of fixed shape, since what
/// is behind the length of a variable one is 0. Throws `Error` (`invalid_argument`) as `SampleSpec`
/// does, if nothing says how long a field is at most, and for a `fill` that the dtype cannot hold.
std::shared_ptr<const Transform> raw_transform(const std::vector<RawField>& fields);
/// The same of all fields that the dataset says anything of.
std::shared_ptr<const Transform> raw_transform(const Dataset& dataset);

}  // namespace millrace
