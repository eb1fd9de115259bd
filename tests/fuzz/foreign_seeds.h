// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lmdb.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace millrace::testing {

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// Writes a small LMDB; into a database with a name if that is not null.
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

/// Begins as a JPEG.
inline std::string seed_image(std::size_t bytes) {
  return "\xFF\xD8\xFF\xE0" + std::string(bytes, 'x');
}

/// As many that they have a branch page.
inline Pairs seed_images(int count) {
  Pairs images;
  for (int n = 0; n < count; ++n)
    images.emplace_back("c" + std::to_string(n % 3) + "/" + std::to_string(1000 + n) + ".jpg",
                        seed_image(n == 5 ? 5000 : 200));
  return images;
}

inline void write_foreign_seeds(const std::filesystem::path& folder) {
  using namespace std::string_literals;
  write_pairs(folder / "images", seed_images(40));
  write_pairs(folder / "ocr", {{"image-000000001", seed_image(100)},
                               {"image-000000002", seed_image(3000)},
                               {"label-000000001", "a text"},
                               {"label-000000002", "b"},
                               {"num-samples", "2"}});
  // channels 1, height 2, width 2, data, label 3
  write_pairs(folder / "datum", {{"0", "\x08\x01\x10\x02\x18\x02\x22\x04wxyz\x28\x03"s},
                                 {"1", "\x08\x01\x10\x02\x18\x02\x22\x04wxyz\x28\x04"s}});
  // A tensor of one string, and one of an int32.
  write_pairs(
      folder / "tensors",
      {{"0", "\x0A\x0C\x08\x01\x10\x04\x32\x06\xFF\xD8\xFF\xE0xy\x0A\x05\x10\x02\x22\x01\x07"s}});
  write_pairs(folder / "tuples", {{"0",
                                   "\x80\x03"s
                                   "C\x06\xFF\xD8\xFF\xE0xyK\x05\x86."s},
                                  {"__len__", "\x80\x03K\x01."s}});
  write_pairs(folder / "messagepack", {{"0", "\x92\xC4\x06\xFF\xD8\xFF\xE0xy\x05"s}});
  write_pairs(folder / "database", {{"\1\0\0\0\0\0\0\0"s, seed_image(20)}}, "records",
              MDB_INTEGERKEY);
}

}  // namespace millrace::testing
