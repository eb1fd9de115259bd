// SPDX-License-Identifier: Apache-2.0
// Options files: what `millrace tune` found is saved by one program and loaded by another.
//
// Threads: all functions may be called from any thread at once, of one file by one at a time.
// Lifetimes: everything here is plain data, which refers to nothing.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/machine.h>
#include <millrace/pipeline.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace MILLRACE_API millrace {

/// What options were found for. Loading compares nothing of it; `millrace bench --config` warns if
/// `recipe` is another one.
struct TunedFor {
  std::string dataset;
  std::uint64_t records = 0;
  /// A JSON object, such as `Recipe::to_json()` gives; empty = not said.
  std::string recipe;
  /// Time of the trainer's step per batch; 0 = none was given.
  double step_ms = 0;

  friend bool operator==(const TunedFor&, const TunedFor&) = default;
};

/// Options that were found to be good, and where: what an options file holds.
struct SavedOptions {
  /// Of these `save_options` writes batch_size, prefetch and micro_batches.
  PipelineOptions pipeline;
  /// For `RuntimeOptions::workers`; 0 = one per usable processor.
  unsigned workers = 0;
  /// Why these, for people.
  std::string why;
  TunedFor tuned_for;
  MachineIdentity machine;
};

/// An options file as read on this machine.
struct LoadedOptions : SavedOptions {
  /// How this machine differs from the file's, a sentence each; empty where it is the same. The
  /// options are good anyway, but may not be the best ones here.
  std::vector<std::string> machine_differences;
};

/// Reads a file that `save_options` or `millrace tune --out` wrote:
///     {"format": 1,
///      "options": {"workers": 2, "batch_size": 64, "prefetch": 3, "micro_batches": 1},
///      "why": "...",
///      "tuned_for": {"dataset": "train.lmdb", "records": 500, "recipe": {...}, "step_ms": 30},
///      "machine": {"cpu": "...", "cores": 2, "numa_nodes": 1, "memory_bytes": 8349589504}}
/// Beside "options" a person may say what else is to be run, each key as the member of
/// `PipelineOptions` of that name:
///     "run": {"name": "train", "seed": 7, "epochs": 90,
///             "order": "shuffled" | "sequential" | "blocks" | "bucketed", "block_records": 1024,
///             "window_blocks": 16, "length_field": "text", "window_records": 8192,
///             "group_records": 256, "last_batch": "partial" | "drop" | "pad",
///             "bad_records": "fail" | "replace" | "mark",
///             "conversion": {"field": "image", "dtype": "uint8" | "float16" | "bfloat16" |
///                            "float32", "layout": "nchw" | "nhwc", "mean": [...], "std": [...]},
///             "index_bytes": 0, "cache_bytes": 0, "device_slots": 2, "read_ahead": 2,
///             "nodes": "device" | "all", "rank": 0, "world": 1, "local_rank": 0, "local_world": 1,
///             "global_batch_size": 256, "resume_anyway": false, "stop_timeout_ms": 1000}
/// "format" and "options" must be there, and with "order": "bucketed" "length_field" and
/// "group_records", with a "world" above 1 "rank". What else is left out has the default of its
/// struct, and a machine that is left out is not compared. Throws `Error` that names file, key and
/// value:
/// `not_found` for a missing file, `io`, or `invalid_argument` for malformed JSON, an unknown key,
/// a wrong type, a value out of range or a newer format. A trainer uses it so:
///     auto loaded = load_options("train.json");
///     loaded.pipeline.runtime = make_runtime({.workers = loaded.workers});
/// and of several ranks on a host says `local_rank` and `local_world` there, too.
LoadedOptions load_options(const std::filesystem::path& path);

/// The same of a text; `source` names it in messages.
LoadedOptions options_from_json(std::string_view text, const std::string& source = "options");

/// Writes `workers`, `why`, `tuned_for`, `machine` and, of `pipeline`, batch_size, prefetch and
/// micro_batches, so that `load_options` gives these back. An existing file is overwritten in
/// place, so a crash meanwhile can leave a part of it. Throws `Error`: `io`, or `invalid_argument`
/// for options that `load_options` would refuse.
void save_options(const std::filesystem::path& path, const SavedOptions& options);

}  // namespace millrace
