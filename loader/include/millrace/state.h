// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>

// Threads and lifetimes: a `State` is a value without references.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace MILLRACE_API millrace {

/// The position of a run. Seed and position are the complete iteration state, because the order is
/// a pure function of them. The other members identify the order, dataset and transform. Resuming
/// compares them with those of the new run. Members without a value are not compared.
struct State {
  /// Weights of a `weighted` order that come into force in a later epoch.
  struct NewWeights {
    std::uint64_t epoch = 0;
    /// `Sampler::hash` of the order with these weights.
    std::uint64_t sampler = 0;
    friend bool operator==(const NewWeights&, const NewWeights&) = default;
  };

  std::uint64_t seed = 0;
  /// Number of samples of the global sequence (all ranks, all epochs) before the next batch. An
  /// epoch has `Sampler::epoch_size()` positions, even if its last batch is dropped.
  std::uint64_t position = 0;
  /// For a one-pass dataset: number of the first record in the shuffle window that contains
  /// `position`. Records are counted from 0 in each epoch. Resuming skips the records before the
  /// window. No value means that the epoch is read from its beginning.
  std::optional<std::uint64_t> window{};
  /// `Sampler::hash` in the epoch of `position`. It identifies the order, the weights in force in
  /// that epoch, and the number of records.
  std::optional<std::uint64_t> sampler{};
  /// Samples per batch over all ranks. The number of ranks is not part of the state: it may change
  /// when the run continues.
  std::optional<std::uint64_t> global_batch{};
  /// `DatasetFacts::fingerprint`, which `millrace pack` writes.
  std::optional<std::uint64_t> dataset{};
  /// `Transform::fingerprint`; for an image transform the fingerprint of its recipe. If
  /// `PipelineOptions::batch_transform` is set, a hash of the fingerprints of the transform and of
  /// that batch transform.
  std::optional<std::uint64_t> recipe{};
  /// Weights that were known when the state was made and are in force only later, ascending by
  /// epoch. A run that resumes from this state must have them, too (`Order::reweighted`). Compared
  /// together with `sampler`.
  std::vector<NewWeights> new_weights{};

  /// Returns one line, for a checkpoint:
  ///     {"format":1,"seed":7,"position":1280,"sampler":"0b1e...","global_batch":256,
  ///      "dataset":"93aa...","recipe":"41c0..."}
  /// Hashes are hexadecimal texts, because some JSON readers do not have 64-bit numbers. Seed,
  /// position and the other numbers may be above 2^53. Python's reader keeps them. A reader that
  /// makes them `double`s, such as JavaScript's, rounds them: store the text unchanged there. If
  /// there are `new_weights`, a member follows:
  ///     "new_weights":[{"epoch":6,"sampler":"77d0..."}]
  /// A `window` is a member, too: "window":2048.
  std::string to_json() const;
  /// Parses the result of `to_json`. Throws an `Error` (`invalid_argument`) that names the wrong
  /// value and its source: `name`, such as a file name. Unknown keys and other formats are errors
  /// too.
  static State from_json(std::string_view json, std::string_view name = "state");

  friend bool operator==(const State&, const State&) = default;
};

/// Lists the reasons why a run with the state `now` cannot continue at `then`, one sentence each;
/// empty if it can. Positions may differ. `transform` is the word for the transform in these
/// sentences, such as "recipe" (`Transform::name_in_messages`).
std::vector<std::string> state_differences(const State& then, const State& now,
                                           const std::string& transform = "transform");
/// Lists the members that were not compared because one of the two states does not have them, one
/// sentence each.
std::vector<std::string> state_not_compared(const State& then, const State& now,
                                            const std::string& transform = "transform");

}  // namespace millrace
