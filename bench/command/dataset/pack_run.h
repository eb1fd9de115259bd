// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/dataset_writer.h>
#include <millrace/decode_budget.h>
#include <millrace/image_decoder.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "command/dataset/images/image_recoder.h"

namespace millrace::cli {

/// Arguments of `millrace pack`.
struct PackOptions {
  std::vector<std::string> inputs;
  std::string out;
  std::string list;
  /// For a folder of images: the folder of their masks, and a JSON file in COCO's format.
  std::string masks;
  std::string coco;
  /// Options for opening an input that is a dataset.
  OpenOptions dataset;
  bool force = false;
  bool resume = false;
  std::uint64_t shards = 0;
  std::uint64_t shard_bytes = 0;
  std::uint64_t commit_bytes = WriterOptions().commit_bytes;
  bool skip_bad = false;
  unsigned workers = 0;
  DecodeLimits limits;
  std::uint64_t max_expansion = 100;
  StoredForm store = StoredForm::unchanged;
  /// Name of what is done, for messages: "packed" or "recoded".
  const char* done = "packed";
  /// The kind of seek index to store; nullopt = none.
  std::optional<IndexPoints> index = IndexPoints::tiles;
};

/// Packs, prints the result, and returns the exit code.
int run_pack(const PackOptions& options);

}  // namespace millrace::cli
