// SPDX-License-Identifier: Apache-2.0
// What the functions of the C header have in common: no exception leaves them, and what they are
// given is looked at first.
#pragma once

#include <millrace/error.h>
#include <millrace/millrace.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace millrace::c {

/// Says how a call went. `error` may be null.
millrace_status tell(millrace_error* error, millrace_status status,
                     std::string_view message) noexcept;
/// The same for the exception that is being handled.
millrace_status tell_exception(millrace_error* error) noexcept;

/// Runs the body of a function, which returns nothing or a status.
template <typename Body>
millrace_status guarded(millrace_error* error, Body&& body) noexcept {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Body>>) {
      body();
      return tell(error, MILLRACE_OK, {});
    } else {
      return tell(error, body(), {});
    }
  } catch (...) {
    return tell_exception(error);
  }
}

/// What a callback returned, as an error. `where` comes before what it says in `error`.
Error callback_error(const std::string& where, millrace_status status, millrace_error& error);

[[noreturn]] void throw_argument(const std::string& message);

/// An argument that must not be null.
template <typename Value>
Value* required(Value* value, const char* name) {
  if (value == nullptr) throw_argument(std::string("the argument ") + name + " is null");
  return value;
}

/// Where a result goes: cleared, so that a call that fails has given nothing.
template <typename Value>
Value& result_at(Value* value, const char* name) {
  return *required(value, name) = Value{};
}

/// For `copied`.
void check_struct_bytes(const void* from, std::size_t bytes, std::size_t known, const char* name);

/// A struct that the caller filled, of this or a later millrace. Throws `Error`
/// (`invalid_argument`) if its size says otherwise, or it sets members that are not known here.
template <typename Struct>
Struct copied(const Struct* from, const char* name) {
  required(from, name);
  check_struct_bytes(from, from->struct_bytes, sizeof(Struct), name);
  Struct copy;
  std::memcpy(&copy, from, sizeof(Struct));
  return copy;
}

/// The text for `millrace_text_free`.
char* text_of(const std::string& text);

}  // namespace millrace::c
