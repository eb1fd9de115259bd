// SPDX-License-Identifier: Apache-2.0
#include "c/handles.h"

#include <pthread.h>

#include <string>
#include <unordered_map>

namespace millrace::c {
namespace {

struct Entry {
  std::shared_ptr<const void> object;
  const char* kind;
};

struct HandleTable {
  std::mutex mutex;
  std::unordered_map<std::uintptr_t, Entry> entries;
  std::uintptr_t next = 1;
  unsigned forks = 0;
};

/// The process's only handle table. C passes a number, so its object must be found through a global
/// variable. The table is never destroyed: a program may end without freeing its handles, and their
/// threads then still run.
HandleTable& table() {
  static HandleTable* const the_table = [] {
    // Holds the mutex during fork(). Otherwise a child could inherit it locked by a thread that
    // does not exist in the child.
    pthread_atfork([] { table().mutex.lock(); }, [] { table().mutex.unlock(); },
                   [] {
                     ++table().forks;
                     table().mutex.unlock();
                   });
    return new HandleTable;
  }();
  return *the_table;
}

}  // namespace

unsigned forks() { return table().forks; }

std::uintptr_t put_object(std::shared_ptr<const void> object, const char* kind) {
  HandleTable& all = table();
  const std::lock_guard lock(all.mutex);
  all.entries.emplace(all.next, Entry{std::move(object), kind});
  return all.next++;
}

std::shared_ptr<const void> get_object(std::uintptr_t handle, const char* kind) {
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorCode::invalid_argument, std::string("the ") + kind + why);
  };
  if (handle == 0) fail(" is null");
  HandleTable& all = table();
  const std::lock_guard lock(all.mutex);
  const auto found = all.entries.find(handle);
  if (found == all.entries.end()) fail(" is not a handle, or was freed: " + std::to_string(handle));
  if (found->second.kind != kind) fail(std::string(" is the handle of a ") + found->second.kind);
  return found->second.object;
}

std::shared_ptr<const void> take_object(std::uintptr_t handle, const char* kind) noexcept {
  HandleTable& all = table();
  const std::lock_guard lock(all.mutex);
  const auto found = all.entries.find(handle);
  if (found == all.entries.end() || found->second.kind != kind) return nullptr;
  auto object = std::move(found->second.object);
  all.entries.erase(found);
  return object;
}

}  // namespace millrace::c
