// SPDX-License-Identifier: Apache-2.0
#include <millrace/error.h>

#include <array>
#include <cstddef>

namespace millrace {

const char* to_string(ErrorCode code) {
  // In the order of `ErrorCode`.
  constexpr auto names = std::to_array(
      {"invalid_argument", "not_found", "already_exists", "io", "corrupt", "incomplete",
       "bad_record", "transform", "device", "slots_exhausted", "timeout", "stopped", "internal"});
  static_assert(names.size() == static_cast<std::size_t>(ErrorCode::internal) + 1);
  const auto number = static_cast<std::size_t>(code);
  return number < names.size() ? names[number] : "unknown";
}

}  // namespace millrace
