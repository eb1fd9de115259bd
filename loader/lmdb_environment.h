// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lmdb.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "record_format.h"

namespace millrace {

struct LmdbDeleter {
  void operator()(MDB_env* environment) const { mdb_env_close(environment); }
  void operator()(MDB_txn* transaction) const { mdb_txn_abort(transaction); }
  void operator()(MDB_cursor* cursor) const { mdb_cursor_close(cursor); }
};
using LmdbEnvironmentHandle = std::unique_ptr<MDB_env, LmdbDeleter>;
using LmdbTransaction = std::unique_ptr<MDB_txn, LmdbDeleter>;
using LmdbCursor = std::unique_ptr<MDB_cursor, LmdbDeleter>;

/// A failed assertion of LMDB: a damaged page. The transaction it was met in must be given up.
struct LmdbAssertion : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An environment that is not opened yet, with room for millrace's databases. Where LMDB would end the process with a failed
/// assertion, the call throws `LmdbAssertion`.
LmdbEnvironmentHandle create_lmdb_environment();
LmdbTransaction begin_transaction(MDB_env* environment, unsigned flags);

/// A dataset file, mapped for reading. Immutable; all methods may be called from any thread at once.
class LmdbEnvironment {
 public:
  /// The file's environment, opened now unless somebody in this process has it open. Throws as `open_dataset` does, except that
  /// an incomplete dataset is let through.
  static std::shared_ptr<const LmdbEnvironment> open(const std::filesystem::path& path);

  const Description& description() const { return description_; }

 private:
  friend class LmdbReader;
  explicit LmdbEnvironment(const std::filesystem::path& path);
  void open_databases(const std::string& name);

  LmdbEnvironmentHandle environment_;
  MDB_dbi records_ = 0;
  Description description_;
};

/// A snapshot of an environment, which it keeps open, with a place in it. Not for two threads at once.
class LmdbReader {
 public:
  explicit LmdbReader(std::shared_ptr<const LmdbEnvironment> environment);

  /// The stored value of a record, in the map; its bytes are not touched. Throws `Error` (`bad_record`) where LMDB does not find
  /// it; the reader is of no more use then.
  std::span<const std::byte> find(std::uint64_t index);

 private:
  std::shared_ptr<const LmdbEnvironment> environment_;
  LmdbTransaction transaction_;
  LmdbCursor cursor_;
};

}  // namespace millrace
