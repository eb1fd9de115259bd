// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/millrace.h>
#include <millrace/sample_spec.h>

#include <cstddef>
#include <string>
#include <vector>

namespace millrace::c {

/// Reads a caller's field. Messages put `where` before the names of members. Throws `Error`
/// (`invalid_argument`).
FieldSpec field_of(const millrace_field_spec& given, const std::string& where);

/// Reads the fields of a caller's callbacks.
std::vector<FieldSpec> fields_of(const millrace_field_spec* fields, std::size_t n_fields);

}  // namespace millrace::c
