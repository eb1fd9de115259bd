// SPDX-License-Identifier: Apache-2.0
#include "c/calls.h"

#include <millrace/pipeline_options.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace millrace::c {
namespace {

struct Code {
  ErrorCode code;
  millrace_status status;
};
constexpr Code codes[] = {{ErrorCode::invalid_argument, MILLRACE_INVALID_ARGUMENT},
                          {ErrorCode::not_found, MILLRACE_NOT_FOUND},
                          {ErrorCode::already_exists, MILLRACE_ALREADY_EXISTS},
                          {ErrorCode::io, MILLRACE_IO},
                          {ErrorCode::corrupt, MILLRACE_CORRUPT},
                          {ErrorCode::incomplete, MILLRACE_INCOMPLETE},
                          {ErrorCode::bad_record, MILLRACE_BAD_RECORD},
                          {ErrorCode::transform, MILLRACE_TRANSFORM},
                          {ErrorCode::device, MILLRACE_DEVICE},
                          {ErrorCode::slots_exhausted, MILLRACE_SLOTS_EXHAUSTED},
                          {ErrorCode::timeout, MILLRACE_TIMEOUT},
                          {ErrorCode::stopped, MILLRACE_STOPPED},
                          {ErrorCode::internal, MILLRACE_INTERNAL}};

millrace_status status_of(ErrorCode code) {
  const auto* const found = std::ranges::find(codes, code, &Code::code);
  return found == std::end(codes) ? MILLRACE_INTERNAL : found->status;
}

/// Returns the error code for a callback's status. Codes that only a pipeline may report count as
/// `internal`, because some of them do not end a run.
ErrorCode code_of(millrace_status status) {
  constexpr millrace_status theirs[] = {
      MILLRACE_INVALID_ARGUMENT, MILLRACE_NOT_FOUND, MILLRACE_IO,    MILLRACE_CORRUPT,
      MILLRACE_BAD_RECORD,       MILLRACE_TRANSFORM, MILLRACE_DEVICE};
  if (std::ranges::find(theirs, status) == std::end(theirs)) return ErrorCode::internal;
  return std::ranges::find(codes, status, &Code::status)->code;
}

/// Truncates the text to the space in `to`, between two UTF-8 characters.
void copy_text(std::string_view text, char* to, std::size_t room) noexcept {
  std::size_t bytes = std::min(text.size(), room - 1);
  const auto inside_character = [&] {
    return (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80U;
  };
  while (bytes < text.size() && bytes > 0 && inside_character()) --bytes;
  text.copy(to, bytes);
  to[bytes] = '\0';
}

}  // namespace

millrace_status set_error(millrace_error* error, millrace_status status,
                          std::string_view message) noexcept {
  if (error != nullptr) {
    error->status = status;
    copy_text(message, error->message, sizeof error->message);
  }
  return status;
}

millrace_status set_error_from_exception(millrace_error* error) noexcept {
  try {
    throw;
  } catch (const SlotsHeld& failed) {
    set_error(error, MILLRACE_SLOTS_HELD, failed.what());
    return MILLRACE_TIMEOUT;
  } catch (const Error& failed) {
    return set_error(error, status_of(failed.code()), failed.what());
  } catch (const std::bad_alloc&) {
    return set_error(error, MILLRACE_NO_MEMORY, "no memory");
  } catch (const std::exception& failed) {
    return set_error(error, MILLRACE_INTERNAL, failed.what());
  } catch (...) {
    return set_error(error, MILLRACE_INTERNAL, "an exception that is not one of C++'s");
  }
}

Error callback_error(const std::string& where, millrace_status status, millrace_error& error) {
  error.message[sizeof error.message - 1] = '\0';
  const ErrorCode code = code_of(status);
  std::string message = error.message;
  if (message.empty())
    message = "the callback returned " + std::to_string(status) + " (" +
              millrace_status_name(status) + ") and no message";
  return {code, where + message, {}, {}, message};
}

void throw_argument(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, message);
}

std::size_t checked_struct_bytes(const void* from, std::size_t bytes, std::size_t oldest,
                                 std::size_t known, const char* name) {
  const auto fail = [&](const std::string& why) {
    throw_argument(std::string(name) + "->struct_bytes is " + std::to_string(bytes) + why);
  };
  if (bytes < oldest || bytes > 16 * known)
    fail(", must be the size of the struct, which is " + std::to_string(known) + " here");
  if (bytes <= known) return bytes;
  const auto* const unknown = static_cast<const unsigned char*>(from) + known;
  if (std::any_of(unknown, unknown + (bytes - known), [](unsigned char byte) { return byte != 0; }))
    fail(", and members are set that this millrace, " MILLRACE_VERSION ", does not know");
  return known;
}

char* text_of(const std::string& text) {
  auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace millrace::c

const char* millrace_version(void) { return MILLRACE_VERSION; }

const char* millrace_status_name(millrace_status status) {
  switch (status) {
    case MILLRACE_OK:
      return "ok";
    case MILLRACE_END:
      return "end";
    case MILLRACE_NO_MEMORY:
      return "no_memory";
    case MILLRACE_SLOTS_HELD:
      return "slots_held";
    default:
      break;
  }
  for (const auto& [code, one] : millrace::c::codes)
    if (one == status) return to_string(code);
  return "unknown";
}

void millrace_text_free(char* text) { std::free(text); }
