// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <new>
#include <string>

namespace millrace {

/// Returns the text of the exception that is being handled. Call it in a `catch` block.
inline std::string text_of_exception() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return "there is not enough memory";
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an unknown exception (not a std::exception)";
  }
}

}  // namespace millrace
