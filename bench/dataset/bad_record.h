// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>

#include <string>

namespace millrace::cli {

/// Why a record cannot be read, of the error that `Dataset::read` threw: without the record's
/// number, key and dataset, which stand beside it in a list.
inline std::string reason_of(const Error& error) {
  const std::string message = error.what();
  constexpr std::string_view before = " cannot be read: ";
  const std::size_t at = message.rfind(before);
  return at == std::string::npos ? message : message.substr(at + before.size());
}

}  // namespace millrace::cli
