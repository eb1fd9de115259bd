// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <lmdb.h>

#include <filesystem>
#include <string>

namespace millrace::testing {

inline void make_foreign_lmdb(const std::filesystem::path& path, const std::string& database,
                              const std::string& key, const std::string& value) {
  MDB_env* environment = nullptr;
  MDB_txn* transaction = nullptr;
  MDB_dbi handle = 0;
  ASSERT_EQ(mdb_env_create(&environment), 0);
  ASSERT_EQ(mdb_env_set_maxdbs(environment, 4), 0);
  ASSERT_EQ(mdb_env_set_mapsize(environment, std::size_t{64} << 20), 0);
  ASSERT_EQ(mdb_env_open(environment, path.c_str(), MDB_NOSUBDIR | MDB_NOLOCK, 0644), 0);
  ASSERT_EQ(mdb_txn_begin(environment, nullptr, 0, &transaction), 0);
  if (!database.empty()) {
    ASSERT_EQ(mdb_dbi_open(transaction, "records", MDB_CREATE | MDB_INTEGERKEY, &handle), 0);
  }
  ASSERT_EQ(
      mdb_dbi_open(transaction, database.empty() ? nullptr : database.c_str(), MDB_CREATE, &handle),
      0);
  MDB_val stored_key{key.size(), const_cast<char*>(key.data())};
  MDB_val stored_value{value.size(), const_cast<char*>(value.data())};
  ASSERT_EQ(mdb_put(transaction, handle, &stored_key, &stored_value, 0), 0);
  ASSERT_EQ(mdb_txn_commit(transaction), 0);
  mdb_env_close(environment);
}

}  // namespace millrace::testing
