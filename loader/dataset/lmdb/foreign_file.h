// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/error.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/lmdb/flavour.h"
#include "dataset/lmdb/lmdb_dataset.h"
#include "dataset/lmdb/samples.h"
#include "dataset/packed/lmdb_file.h"

// What the flavours' probes and openers have in common.

namespace millrace {

/// Calls `look` with the file at `path`, read call by call, and its main database. Returns what
/// that returns, or why the file cannot be looked at.
Status look_at_main(const std::filesystem::path& path,
                    Status (*look)(const LmdbFile& file, const LmdbTree& main));

/// Whether the main database's entries are databases themselves, by some of them.
bool holds_databases(const LmdbFile& file, const LmdbTree& main);
/// The names of these, as far as there are no more than a few dozen.
std::vector<std::string> database_names(const LmdbFile& file);
/// Ok if the database of this name (empty: the main one) can be read as records.
Status check_database(const LmdbTree& tree, std::string_view name);

/// A file that is opened for good. Its functions throw as `open_dataset` does.
class ForeignFile {
 public:
  ForeignFile(const std::filesystem::path& path, const OpenOptions& options);

  const LmdbFile& file() const { return *file_; }
  /// The named database; the main one if the name is empty.
  LmdbTree database(const std::string& name) const;
  /// Its entries but for metadata. The table of its leaves is the one that is stored beside the
  /// file, or is made now.
  Entries entries(const LmdbTree& tree);

  /// The dataset whose records are of this flavour, in the databases that the options name.
  std::shared_ptr<const Dataset> open(std::unique_ptr<Flavour> flavour, std::string_view format);
  /// The same with its parts but for the description of the flavour.
  std::shared_ptr<const Dataset> finish(LmdbParts parts, std::string_view format);

  /// What `read` returns. Throws `Error` (`corrupt`, naming the file) in place of `LmdbDamage`.
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
