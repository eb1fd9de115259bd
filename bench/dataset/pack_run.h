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

namespace millrace::cli {

/// The command line of `millrace pack`.
struct PackOptions {
  std::vector<std::string> inputs;
  std::string out;
  std::string list;
  /// Of a folder's images: the folder of their masks, and a JSON file of COCO's form.
  std::string masks;
  std::string coco;
  /// How an input that is a dataset is opened.
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
  /// The seek index of the images that is stored, too; nullopt = none is.
  std::optional<IndexPoints> index = IndexPoints::tiles;
};

/// Packs as the options say, tells what was done, and returns the exit code.
int run_pack(const PackOptions& options);

}  // namespace millrace::cli
