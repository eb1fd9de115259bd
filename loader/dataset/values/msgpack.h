// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>

#include <cstddef>
#include <span>

#include "dataset/values/value.h"

namespace millrace {

/// Reads one value of MessagePack (https://github.com/msgpack/msgpack/blob/master/spec.md), which
/// takes the whole input. Arrays are lists, maps dictionaries. A str that is not UTF-8 is bytes,
/// since writers that know or use no bin have no other type for these. Bad are integers beyond
/// int64, ext types (named by their number; -1 is a timestamp) and arrays of msgpack-numpy, which
/// are maps of a certain form.
///
/// `values` refers to `input` if it went well; bad says what is wrong and where. May be called from
/// any thread at once, for different `values`.
Status read_msgpack(std::span<const std::byte> input, Values& values);

}  // namespace millrace
