// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>

// Threads and lifetimes: a `State` is a value that refers to nothing.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace MILLRACE_API millrace {

/// Where a run is: seed and position are the whole of its iteration state, since order is a pure
/// function of them. The rest says what they count, so that a run which goes on with something else
/// is told; what is missing is not compared.
struct State {
  std::uint64_t seed = 0;
  /// Samples of the global sequence (all ranks, all epochs) before the next batch. An epoch is as
  /// many positions as `Sampler::epoch_size()`, also where its last batch is dropped.
  std::uint64_t position = 0;
  /// `Sampler::hash`: the order, with the number of records.
  std::optional<std::uint64_t> sampler{};
  /// Samples of a batch over all ranks. Not how many ranks there are: they may be others when the
  /// run goes on.
  std::optional<std::uint64_t> global_batch{};
  /// `DatasetFacts::fingerprint`, which `millrace pack` writes.
  std::optional<std::uint64_t> dataset{};
  /// `Transform::fingerprint`: of an image transform its recipe's.
  std::optional<std::uint64_t> recipe{};

  /// One line, for a checkpoint:
  ///     {"format":1,"seed":7,"position":1280,"sampler":"0b1e...","global_batch":256,
  ///      "dataset":"93aa...","recipe":"41c0..."}
  /// Hashes are hexadecimal texts, since not every reader of JSON has numbers of 64 bits.
  std::string to_json() const;
  /// Reads that. Throws `Error` (`invalid_argument`) that says which value of `name` (a file, say)
  /// is wrong; unknown keys and other formats are errors, too.
  static State from_json(std::string_view json, std::string_view name = "state");

  friend bool operator==(const State&, const State&) = default;
};

/// The reasons why a run that `now` describes cannot go on at `then`, a sentence each; empty if it
/// can. Positions may differ. `transform` is what `Transform::fingerprint_of` says.
std::vector<std::string> state_differences(const State& then, const State& now,
                                           const std::string& transform = "transform");
/// What was not compared for that, since one of the two does not say it, a sentence each.
std::vector<std::string> state_not_compared(const State& then, const State& now,
                                            const std::string& transform = "transform");

}  // namespace millrace
