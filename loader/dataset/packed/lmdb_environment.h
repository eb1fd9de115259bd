// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lmdb.h>

#include <memory>
#include <stdexcept>

namespace millrace {

// LMDB, for writing; datasets are read by `LmdbPages`.

struct LmdbDeleter {
  void operator()(MDB_env* environment) const { mdb_env_close(environment); }
  void operator()(MDB_txn* transaction) const { mdb_txn_abort(transaction); }
};
using LmdbEnvironmentHandle = std::unique_ptr<MDB_env, LmdbDeleter>;
using LmdbTransaction = std::unique_ptr<MDB_txn, LmdbDeleter>;

/// A failed assertion of LMDB: a damaged page. The transaction it was met in must be given up.
struct LmdbAssertion : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An environment that is not opened yet, with room for millrace's databases. Where LMDB would end
/// the process with a failed assertion, the call throws `LmdbAssertion`.
LmdbEnvironmentHandle create_lmdb_environment();

}  // namespace millrace
