// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <millrace/pipeline.h>
#include <millrace/sampler.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <ostream>
#include <vector>

#include "support/fake_dataset.h"
#include "support/fake_transform.h"

namespace millrace::testing {

/// All values of a batch of a `StampTransform`, copied out of its slot.
struct BatchContents {
  std::uint64_t number = 0;
  std::uint64_t epoch = 0;
  bool last_in_epoch = false;
  std::size_t global_size = 0;
  State after;
  std::vector<std::uint64_t> indices;
  std::vector<std::uint8_t> valid;
  std::vector<std::uint8_t> images;
  std::vector<std::int64_t> labels;
  std::vector<std::uint64_t> draws;

  friend bool operator==(const BatchContents&, const BatchContents&) = default;
  friend void PrintTo(const BatchContents& batch, std::ostream* out) {
    *out << "batch " << batch.number << " of epoch " << batch.epoch
         << (batch.last_in_epoch ? " (last)" : "") << ", " << batch.indices.size() << " of "
         << batch.global_size << " samples, then position " << batch.after.position << ", records "
         << ::testing::PrintToString(batch.indices) << ", draws "
         << ::testing::PrintToString(batch.draws);
  }
};

/// Copies out a batch that can be read on the host.
inline BatchContents contents(const Batch& batch) {
  BatchContents result;
  result.number = batch.number();
  result.epoch = batch.epoch();
  result.last_in_epoch = batch.last_in_epoch();
  result.global_size = batch.global_size();
  result.after = batch.state_after();
  result.indices.assign(batch.indices().begin(), batch.indices().end());
  result.valid.assign(batch.valid().begin(), batch.valid().end());
  const auto images = batch.images().as<std::uint8_t>();
  result.images.assign(images.begin(), images.end());
  const auto labels = batch.labels().as<std::int64_t>();
  result.labels.assign(labels.begin(), labels.end());
  const auto draws = batch["draw"].as<std::uint64_t>();
  result.draws.assign(draws.begin(), draws.end());
  return result;
}

/// Takes batches until the end of the run, but at most `most`.
inline std::vector<BatchContents> take(Pipeline& pipeline, std::size_t most = SIZE_MAX) {
  std::vector<BatchContents> result;
  while (result.size() < most) {
    const Batch batch = pipeline.next();
    if (!batch) break;
    result.push_back(contents(batch));
  }
  return result;
}

/// Whether sample `sample` is the one made from record `record` with random draw `draw`.
inline bool is_stamped(const BatchContents& batch, std::size_t sample, std::uint64_t record,
                       std::uint64_t draw) {
  const std::size_t image_bytes = batch.images.size() / batch.indices.size();
  for (std::size_t place = 0; place < image_bytes; ++place)
    if (batch.images[sample * image_bytes + place] !=
        static_cast<std::uint8_t>(StampTransform::pixel(record, draw, place)))
      return false;
  return batch.indices[sample] == record && batch.draws[sample] == draw &&
         batch.labels[sample] == MemoryDataset::label_of(record);
}

/// Expects the samples at the global positions from `first` on, with the random numbers of these
/// positions.
inline void expect_positions(const BatchContents& batch, const Sampler& sampler, std::uint64_t seed,
                             std::uint64_t first) {
  for (std::size_t sample = 0; sample < batch.indices.size(); ++sample) {
    const std::uint64_t position = first + sample;
    EXPECT_TRUE(is_stamped(batch, sample, sampler(position), Random(seed, position).bits64()))
        << "sample " << sample << " of batch " << batch.number << " is not that of position "
        << position << ": it has record " << batch.indices[sample];
  }
}

}  // namespace millrace::testing
