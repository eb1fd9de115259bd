// SPDX-License-Identifier: Apache-2.0
// Options files: `millrace tune` saves the options that it found, and another program loads them.
//
// Threads: all functions may be called by several threads at the same time. Only one thread at a
// time may use one file. Lifetimes: all types are plain data without references.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/machine.h>
#include <millrace/pipeline_options.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace MILLRACE_API millrace {

/// The workload that options were tuned for. `load_options` does not compare it with anything.
/// `millrace bench --config` warns if `recipe` differs.
struct TunedFor {
  std::string dataset;
  std::uint64_t records = 0;
  /// A JSON object, for example the result of `Recipe::to_json()`; empty = unknown.
  std::string recipe;
  /// Time of the trainer's step per batch in milliseconds; 0 = unknown.
  double step_ms = 0;

  friend bool operator==(const TunedFor&, const TunedFor&) = default;
};

/// Content of an options file: tuned options, and the workload and machine that they were tuned
/// for.
struct SavedOptions {
  /// `save_options` writes only three of these options: batch_size, prefetch and micro_batches.
  PipelineOptions pipeline;
  /// Value for `RuntimeOptions::workers`; 0 = one per usable processor.
  unsigned workers = 0;
  /// Reason for these values, for people.
  std::string why;
  TunedFor tuned_for;
  MachineIdentity machine;
};

/// An options file as read on this machine.
struct LoadedOptions : SavedOptions {
  /// Differences between this machine and the file's machine, one sentence each; empty if the
  /// machines are the same. The options work here too, but others may be better.
  std::vector<std::string> machine_differences;
};

/// Reads a file that `save_options` or `millrace tune --out` wrote:
///     {"format": 1,
///      "options": {"workers": 2, "batch_size": 64, "prefetch": 3, "micro_batches": 1},
///      "why": "...",
///      "tuned_for": {"dataset": "train.lmdb", "records": 500, "recipe": {...}, "step_ms": 30},
///      "machine": {"cpu": "...", "cores": 2, "numa_nodes": 1, "memory_bytes": 8349589504}}
/// A person may add "run" with further settings. Most of its keys set the option of the same name.
/// "length_field" is the field for `Order::bucketed_by`. "resume_anyway" sets `resume.anyway`.
/// "stop_timeout_ms" sets `debug.stop_timeout`.
///     "run": {"name": "train", "seed": 7, "epochs": 90,
///             "order": "shuffled" | "sequential" | "blocks" | "bucketed", "block_records": 1024,
///             "window_blocks": 16, "length_field": "text", "window_records": 8192,
///             "group_records": 256, "last_batch": "partial" | "drop" | "pad",
///             "bad_records": "fail" | "replace" | "mark",
///             "conversion": {"field": "image", "dtype": "uint8" | "float16" | "bfloat16" |
///                            "float32", "layout": "nchw" | "nhwc", "mean": [...], "std": [...]},
///             "index_bytes": 0, "cache_bytes": 0, "device_slots": 2, "read_ahead": 2,
///             "nodes": "device" | "all", "epoch_break": false, "rank": 0, "world": 1,
///             "local_rank": 0, "local_world": 1, "global_batch_size": 256,
///             "resume_anyway": false, "stop_timeout_ms": 1000}
/// "format" and "options" are required. "order": "bucketed" requires "length_field" and
/// "group_records". A "world" above 1 requires "rank". Any other missing key has the default of its
/// struct. A missing machine is not compared.
///
/// Throws an `Error` that names file, key and value. The error is `not_found` for a missing file,
/// and `io` for a file that cannot be read. It is `invalid_argument` for malformed JSON, an unknown
/// key, a wrong type, a value out of range or a newer format. Use in a trainer:
///     auto loaded = load_options("train.json");
///     loaded.pipeline.runtime = make_runtime({.workers = loaded.workers});
/// With several ranks on a host, also pass `local_rank` and `local_world` to `make_runtime`.
LoadedOptions load_options(const std::filesystem::path& path);

/// Does the same for a JSON text. Error messages call the text `source`.
LoadedOptions options_from_json(std::string_view text, const std::string& source = "options");

/// Writes `workers`, `why`, `tuned_for`, `machine`, and batch_size, prefetch and micro_batches of
/// `pipeline`, for `load_options`. Replaces an existing file, or a symbolic link's target, in one
/// step or not at all; other hard links keep the old text. Throws `Error`: `io`, also for a file
/// without write permission; `invalid_argument` for options that `load_options` would refuse.
void save_options(const std::filesystem::path& path, const SavedOptions& options);

}  // namespace millrace
