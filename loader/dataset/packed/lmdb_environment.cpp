// SPDX-License-Identifier: Apache-2.0
#include "dataset/packed/lmdb_environment.h"

#include <millrace/error.h>

#include <string>

namespace millrace {
namespace {

// LMDB's codes are those of the operating system where they are positive.
[[noreturn]] void throw_lmdb(int code, const std::string& what) {
  throw Error(code > 0 ? ErrorCode::io : ErrorCode::corrupt, what + ": " + mdb_strerror(code));
}

// LMDB aborts the process when this returns. Its frames hold nothing that would need unwinding.
void throw_assertion(MDB_env*, const char* message) { throw LmdbAssertion(message); }

}  // namespace

LmdbEnvironmentHandle create_lmdb_environment() {
  MDB_env* created = nullptr;
  if (const int code = mdb_env_create(&created))
    throw_lmdb(code, "an LMDB environment cannot be made");
  LmdbEnvironmentHandle environment(created);
  mdb_env_set_maxdbs(created, 2);
  mdb_env_set_assert(created, throw_assertion);
  return environment;
}

}  // namespace millrace
