// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/error.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/lmdb/lmdb_dataset.h"
#include "dataset/lmdb/lmdb_schema.h"
#include "dataset/lmdb/samples.h"
#include "dataset/packed/lmdb_file.h"

// The parts that the probes and openers of all schemas share.

namespace millrace {

/// Calls `look` with the file at `path`, opened without a map, and its main database. Returns the
/// result, or the reason why the file cannot be read.
Status look_at_main(const std::filesystem::path& path,
                    Status (*look)(const LmdbFile& file, const LmdbTree& main));

/// Returns whether the main database's entries are databases themselves, judged by a sample of
/// them.
bool holds_databases(const LmdbFile& file, const LmdbTree& main);
/// Returns the names of these databases; empty if the main database has more than 64 entries.
std::vector<std::string> database_names(const LmdbFile& file);
/// Returns ok if the database of this name (empty: the main one) can be read as records.
Status check_database(const LmdbTree& tree, std::string_view name);

/// An LMDB file that is opened as a dataset. Its functions throw the same errors as `open_dataset`.
class ForeignFile {
 public:
  ForeignFile(const std::filesystem::path& path, const OpenOptions& options);

  const LmdbFile& file() const { return *file_; }
  /// Returns the named database; the main one if the name is empty.
  LmdbTree database(const std::string& name) const;
  /// Returns the database's entries without metadata. The table of its leaves is read from the file
  /// beside the LMDB, or built now.
  Entries entries(const LmdbTree& tree);

  /// Opens a dataset whose records have this schema, in the databases that the options name.
  std::shared_ptr<const Dataset> open(std::unique_ptr<LmdbSchema> schema, std::string_view format);
  /// Makes the dataset from its parts. Sets the facts `format`, `files` and `warnings`.
  std::shared_ptr<const Dataset> finish(LmdbParts parts, std::string_view format);

  /// Returns the result of `read`. Turns `LmdbDamage` into `Error` (`corrupt`, naming the file).
  template <typename Read>
  auto guarded(Read read) const {
    try {
      return read();
    } catch (const LmdbDamage& damage) {
      refuse(damage);
    }
  }

 private:
  [[noreturn]] void refuse(const LmdbDamage& damage) const;

  std::shared_ptr<const LmdbFile> file_;
  OpenOptions options_;
  std::vector<std::string> warnings_;
};

}  // namespace millrace
