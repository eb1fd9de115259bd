// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "support/small_run.h"

namespace millrace::testing {

template <typename T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// Returns the global batches of a run on `world` ranks, each assembled from the ranks' batches in
/// their order; at most `most`. Expects that the ranks' descriptions of a batch agree, and that
/// their shares differ by at most one sample.
inline std::vector<BatchContents> global_sequence(SmallRun run, std::uint32_t world,
                                                  std::optional<State> resume = {},
                                                  std::size_t most = SIZE_MAX) {
  std::vector<BatchContents> global;
  run.options.resume.from = resume;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    run.options.ranks.this_process = {.rank = rank, .world = world};
    Pipeline pipeline = run.pipeline();
    const std::vector<BatchContents> local = take(pipeline, most);
    if (rank == 0) {
      global = local;
      continue;
    }
    EXPECT_EQ(local.size(), global.size()) << "a rank that has fewer batches hangs the others";
    for (std::size_t batch = 0; batch < std::min(local.size(), global.size()); ++batch) {
      const BatchContents& part = local[batch];
      BatchContents& whole = global[batch];
      EXPECT_EQ(part.number, whole.number);
      EXPECT_EQ(part.epoch, whole.epoch);
      EXPECT_EQ(part.last_in_epoch, whole.last_in_epoch);
      EXPECT_EQ(part.global_size, whole.global_size);
      EXPECT_EQ(part.after, whole.after) << "a state is that of all ranks";
      const auto mean = (whole.indices.size() + part.indices.size()) / (rank + 1);
      EXPECT_LE(part.indices.size(), mean + 1);
      EXPECT_GE(part.indices.size() + 1, mean);
      append(whole.indices, part.indices);
      append(whole.valid, part.valid);
      append(whole.images, part.images);
      append(whole.labels, part.labels);
      append(whole.draws, part.draws);
    }
  }
  return global;
}

/// FNV-1a hash of all values of a run's batches.
inline std::uint64_t hash_of(const std::vector<BatchContents>& batches) {
  std::uint64_t hash = 0xCBF29CE484222325;
  const auto add = [&hash](const auto& values) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
    for (std::size_t n = 0; n < values.size() * sizeof values[0]; ++n)
      hash = (hash ^ bytes[n]) * 0x100000001B3;
  };
  for (const BatchContents& batch : batches) {
    add(std::vector{batch.number, batch.epoch, batch.after.position});
    add(batch.indices);
    add(batch.valid);
    add(batch.images);
    add(batch.labels);
    add(batch.draws);
  }
  return hash;
}

}  // namespace millrace::testing
