// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/process_warnings.h>

#include <mutex>
#include <utility>

#include "base/mutex.h"

namespace millrace {
namespace {

Mutex& warnings_mutex() {
  static Mutex mutex;
  return mutex;
}

/// The list is never destroyed, because threads may outlive `main`.
std::vector<std::string>& warnings() {
  static std::vector<std::string>& list = *new std::vector<std::string>;
  return list;
}

}  // namespace

void add_process_warning(std::string text) {
  static std::once_flag once;
  std::call_once(once, keep_free_in_children<warnings_mutex>);
  const MutexLock lock(warnings_mutex());
  warnings().push_back(std::move(text));
}

std::vector<std::string> process_warnings() {
  const MutexLock lock(warnings_mutex());
  return warnings();
}

}  // namespace millrace
