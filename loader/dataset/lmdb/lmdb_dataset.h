// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "dataset/lmdb/entries.h"
#include "dataset/lmdb/flavour.h"
#include "dataset/lmdb/keys.h"
#include "dataset/lmdb/label_values.h"

namespace millrace {

/// Entries with the labels of a dataset's records: as many, in the same order.
struct LabelEntries {
  Entries entries;
  LabelValues values;
  /// Where in a label's key, and in an image's, that begins which both have in common.
  std::size_t own_key_begin = 0;
  std::size_t image_key_begin = 0;
};

/// What a dataset in others' LMDB consists of.
struct LmdbParts {
  Entries records;
  std::optional<LabelEntries> labels;
  std::unique_ptr<const Flavour> flavour;
  KeyNames key_names;
  DatasetFacts facts;
};

/// Throws `Error` (`corrupt`, naming the key) unless each record has a label and each label a
/// record.
void check_joined(const LmdbParts& parts);

std::shared_ptr<const Dataset> make_lmdb_dataset(LmdbParts parts, const OpenOptions& options);

}  // namespace millrace
