// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>

#include <cstddef>
#include <span>

#include "dataset/values/value.h"

namespace millrace {

/// Parses one MessagePack value (https://github.com/msgpack/msgpack/blob/master/spec.md), which
/// must be the whole input. Arrays become lists, maps become dictionaries. A str that is not UTF-8
/// becomes bytes, since writers without bin have no other type for bytes. Returns bad for integers
/// beyond int64, for ext types (named by their number; -1 is a timestamp), and for arrays of
/// msgpack-numpy, which are maps of a certain form.
///
/// On success `values` refers to `input`. On failure the reason says what is wrong and where. May
/// be called from several threads at once, for different `values`.
Status read_msgpack(std::span<const std::byte> input, Values& values);

}  // namespace millrace
