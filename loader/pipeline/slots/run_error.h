// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/device.h>
#include <millrace/error.h>

#include <exception>
#include <new>
#include <string>

#include "base/exception_text.h"

namespace millrace {

/// Returns the error that ends the run because of the exception being handled. `device` is the
/// device whose call threw, or null for a call of millrace itself. A lack of memory is never
/// reported as the device's error.
inline std::exception_ptr run_error(const char* stage, const Device* device) {
  const std::string failed = std::string(stage) + " failed: ";
  try {
    throw;
  } catch (const Error&) {
    return std::current_exception();
  } catch (const std::bad_alloc&) {
    return std::make_exception_ptr(
        Error(ErrorCode::internal, failed + "there is not enough memory", stage));
  } catch (...) {
    const std::string what = text_of_exception();
    return std::make_exception_ptr(
        device != nullptr ? Error(ErrorCode::device,
                                  failed + "device " + device->name() + " threw: " + what, stage)
                          : Error(ErrorCode::internal, failed + what, stage));
  }
}

}  // namespace millrace
