// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lmdb.h>

#include <cstddef>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace millrace::testing {

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// Adds pairs to an LMDB file, which is created if needed; to a named database if the name is not
/// null.
inline void write_pairs(const std::filesystem::path& path, const Pairs& pairs,
                        const char* database = nullptr, unsigned flags = 0) {
  MDB_env* environment = nullptr;
  MDB_txn* transaction = nullptr;
  MDB_dbi handle = 0;
  const auto check = [](int result) {
    if (result != 0) throw std::runtime_error(mdb_strerror(result));
  };
  check(mdb_env_create(&environment));
  check(mdb_env_set_maxdbs(environment, 4));
  check(mdb_env_set_mapsize(environment, std::size_t{64} << 20));
  check(mdb_env_open(environment, path.c_str(), MDB_NOSUBDIR | MDB_NOLOCK, 0644));
  check(mdb_txn_begin(environment, nullptr, 0, &transaction));
  check(mdb_dbi_open(transaction, database, MDB_CREATE | flags, &handle));
  for (const auto& [key, value] : pairs) {
    MDB_val stored_key{key.size(), const_cast<char*>(key.data())};
    MDB_val stored_value{value.size(), const_cast<char*>(value.data())};
    check(mdb_put(transaction, handle, &stored_key, &stored_value, 0));
  }
  check(mdb_txn_commit(transaction));
  mdb_env_close(environment);
}

/// Makes an LMDB file with a single entry. If the entry is in a named database, another empty one
/// is added.
inline void make_foreign_lmdb(const std::filesystem::path& path, const std::string& database,
                              const std::string& key, const std::string& value) {
  if (!database.empty()) write_pairs(path, {}, "records", MDB_INTEGERKEY);
  write_pairs(path, {{key, value}}, database.empty() ? nullptr : database.c_str());
}

}  // namespace millrace::testing
