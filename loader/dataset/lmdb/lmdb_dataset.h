// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "dataset/lmdb/entries.h"
#include "dataset/lmdb/keys.h"
#include "dataset/lmdb/label_values.h"
#include "dataset/lmdb/lmdb_schema.h"

namespace millrace {

/// Entries with the labels of a dataset's records: one for each record, in the same order.
struct LabelEntries {
  Entries entries;
  LabelValues values;
  /// Offset in a label's key, and in its image's key, of the part that must be the same in both.
  std::size_t own_key_begin = 0;
  std::size_t image_key_begin = 0;
};

/// The parts of a dataset in another program's LMDB.
struct LmdbParts {
  Entries records;
  std::optional<LabelEntries> labels;
  std::unique_ptr<const LmdbSchema> schema;
  KeyNames key_names;
  DatasetFacts facts;
};

/// Throws `Error` (`corrupt`, naming the key) unless records and labels match one to one.
void check_joined(const LmdbParts& parts);

std::shared_ptr<const Dataset> make_lmdb_dataset(LmdbParts parts, const OpenOptions& options);

}  // namespace millrace
