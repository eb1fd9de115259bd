// SPDX-License-Identifier: Apache-2.0
// Helpers for the functions of the C header, which check their arguments first and throw no
// exception.
#pragma once

#include <millrace/error.h>
#include <millrace/millrace.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace millrace::c {

/// Writes the result of a call into `error`, which may be null. Returns `status`.
millrace_status set_error(millrace_error* error, millrace_status status,
                          std::string_view message) noexcept;
/// Writes the exception that is being handled into `error`. Returns its status.
millrace_status set_error_from_exception(millrace_error* error) noexcept;

/// Runs the body of a function, which returns nothing or a status. Converts exceptions to a status.
template <typename Body>
millrace_status guarded(millrace_error* error, Body&& body) noexcept {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Body>>) {
      body();
      return set_error(error, MILLRACE_OK, {});
    } else {
      return set_error(error, body(), {});
    }
  } catch (...) {
    return set_error_from_exception(error);
  }
}

/// Error for a status that a callback returned. The message is `where` followed by the text in
/// `error`.
Error callback_error(const std::string& where, millrace_status status, millrace_error& error);

[[noreturn]] void throw_argument(const std::string& message);

/// Returns the argument. Throws `Error` (`invalid_argument`) if it is null.
template <typename Value>
Value* required(Value* value, const char* name) {
  if (value == nullptr) throw_argument(std::string("the argument ") + name + " is null");
  return value;
}

/// Clears an output argument, so that it is null or 0 after a failure. Throws `Error`
/// (`invalid_argument`) if it is null.
template <typename Value>
Value& result_at(Value* value, const char* name) {
  return *required(value, name) = Value{};
}

/// Size check for `copied`. Returns the number of bytes to copy.
std::size_t checked_struct_bytes(const void* from, std::size_t bytes, std::size_t oldest,
                                 std::size_t known, const char* name);

/// Copies a struct that the caller filled, of this version, a later one, or an earlier one of at
/// least `oldest` bytes. Members that an earlier version does not have are 0. Throws `Error`
/// (`invalid_argument`) if `struct_bytes` is wrong, or if members are set that this version does
/// not know.
template <typename Struct>
Struct copied(const Struct* from, const char* name, std::size_t oldest = sizeof(Struct)) {
  required(from, name);
  Struct copy{};
  std::memcpy(&copy, from,
              checked_struct_bytes(from, from->struct_bytes, oldest, sizeof(Struct), name));
  return copy;
}

/// Copies a text into memory that `millrace_text_free` frees.
char* text_of(const std::string& text);

}  // namespace millrace::c
