// SPDX-License-Identifier: Apache-2.0
#include <millrace/error.h>

namespace millrace {

const char* to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::already_exists:
      return "already_exists";
    case ErrorCode::io:
      return "io";
    case ErrorCode::corrupt:
      return "corrupt";
    case ErrorCode::incomplete:
      return "incomplete";
    case ErrorCode::bad_record:
      return "bad_record";
    case ErrorCode::transform:
      return "transform";
    case ErrorCode::device:
      return "device";
    case ErrorCode::slots_exhausted:
      return "slots_exhausted";
    case ErrorCode::timeout:
      return "timeout";
    case ErrorCode::stopped:
      return "stopped";
    case ErrorCode::internal:
      return "internal";
  }
  return "unknown";
}

}  // namespace millrace
