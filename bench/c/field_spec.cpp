// SPDX-License-Identifier: Apache-2.0
#include "c/field_spec.h"

#include <iterator>

#include "c/calls.h"

namespace millrace::c {
namespace {

std::string all_dtypes() {
  std::string names;
  for (int number = 0; number <= static_cast<int>(DType::boolean); ++number)
    names += (number > 0 ? ", " : "") + std::string(to_string(static_cast<DType>(number)));
  return names;
}

}  // namespace

FieldSpec field_of(const millrace_field_spec& given, const std::string& where) {
  FieldSpec field;
  field.name = required(given.name, (where + "name").c_str());
  const std::string dtype = required(given.dtype, (where + "dtype").c_str());
  const std::optional<DType> found = dtype_of(dtype);
  if (!found)
    throw_argument(where + "dtype is \"" + dtype + "\" for the field \"" + field.name +
                   "\", must be one of " + all_dtypes());
  field.dtype = *found;
  if (given.rank > std::size(given.shape))
    throw_argument(where + "rank is " + std::to_string(given.rank) + ", must be 0 to " +
                   std::to_string(std::size(given.shape)));
  for (std::size_t axis = given.rank; axis-- > 0;)
    field.shape = field.shape.with_outer(given.shape[axis]);
  field.variable = given.variable != 0;
  return field;
}

std::vector<FieldSpec> fields_of(const millrace_field_spec* fields, std::size_t n_fields) {
  if (n_fields > 0) required(fields, "callbacks->fields");
  std::vector<FieldSpec> specs;
  for (std::size_t k = 0; k < n_fields; ++k)
    specs.push_back(field_of(fields[k], "callbacks->fields[" + std::to_string(k) + "]."));
  return specs;
}

}  // namespace millrace::c
