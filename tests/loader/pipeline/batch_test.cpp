// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/batch.h>

#include <type_traits>
#include <vector>

#include "support/small_run.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using testing::SmallRun;

static_assert(std::is_nothrow_move_constructible_v<Batch>);
static_assert(std::is_copy_constructible_v<Batch>);
static_assert(std::is_copy_assignable_v<Batch> && std::is_move_assignable_v<Batch>);

TEST(Batch, IsEmptyByDefault) {
  Batch batch;
  EXPECT_FALSE(batch);
  const Batch copy = batch;
  EXPECT_FALSE(copy);
  batch.reset();
  EXPECT_FALSE(batch);
  EXPECT_EQ(error_of([&] { (void)batch.size(); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([&] { (void)batch["image"]; }).code(), ErrorCode::invalid_argument);
}

TEST(Batch, HasItsFieldsWithTheBatchOutermost) {
  SmallRun run(20);
  run.transform = std::make_shared<testing::StampTransform>(10);
  Pipeline pipeline = run.pipeline();
  const Batch batch = pipeline.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch.size(), 8U);
  EXPECT_EQ(batch["image"].shape, Shape({8, 10}));
  EXPECT_EQ(batch["image"].dtype, DType::uint8);
  EXPECT_EQ(batch.images().data, batch["image"].data);
  EXPECT_EQ(batch.labels().shape, Shape({8}));
  EXPECT_EQ(batch.labels().data, batch["label"].data);
  EXPECT_EQ(batch["draw"].dtype, DType::uint64);
  EXPECT_EQ(error_of([&] { (void)batch["imgae"]; }).code(), ErrorCode::not_found);
  EXPECT_EQ(batch.valid_count(), 8U);
  EXPECT_EQ(batch.indices().size(), 8U);
}

TEST(Batch, ShrinksAtTheEpochsEnd) {
  SmallRun run(20);
  Pipeline pipeline = run.pipeline();
  std::vector<std::size_t> sizes;
  std::vector<bool> last;
  std::vector<std::uint64_t> positions;
  while (const Batch batch = pipeline.next()) {
    sizes.push_back(batch.size());
    last.push_back(batch.last_in_epoch());
    positions.push_back(batch.state_after().position);
    EXPECT_EQ(batch.number(), sizes.size() - 1);
    EXPECT_EQ(batch.labels().shape, Shape({batch.size()}));
    EXPECT_EQ(batch.global_size(), batch.size());
    EXPECT_EQ(batch.state_after().seed, 42U);
  }
  EXPECT_THAT(sizes, ElementsAre(8, 8, 4));
  EXPECT_THAT(last, ElementsAre(false, false, true));
  EXPECT_THAT(positions, ElementsAre(8, 16, 20));
}

TEST(Batch, CopiesAndMovesShareOneSlot) {
  SmallRun run(20);
  run.options.slots.prefetch = 1;
  Pipeline pipeline = run.pipeline();
  Batch first = pipeline.next();
  Batch copy = first;
  EXPECT_EQ(copy.images().data, first.images().data);
  Batch moved = std::move(first);
  EXPECT_FALSE(first);  // NOLINT: the state of a moved-from batch is part of its contract
  EXPECT_TRUE(moved);
  moved.reset();
  EXPECT_EQ(error_of([&] { (void)pipeline.next(); }).code(), ErrorCode::slots_exhausted)
      << "the copy still holds the slot";
  Batch& same = copy;
  copy = same;
  EXPECT_TRUE(copy);
  copy.reset();
  const Batch second = pipeline.next();
  ASSERT_TRUE(second);
  EXPECT_EQ(second.number(), 1U);
}

class BatchParts : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Copies, BatchParts, ::testing::Bool());

TEST_P(BatchParts, TileTheBatch) {
  for (const std::size_t micro_batches : {1U, 3U, 4U, 8U}) {
    SCOPED_TRACE(micro_batches);
    SmallRun run(20, GetParam());
    run.options.slots.micro_batches = micro_batches;
    Pipeline pipeline = run.pipeline();
    HostStream stream;
    while (const Batch batch = pipeline.next_in_micro_batches(stream)) {
      std::size_t parts = 0;
      std::size_t samples = 0;
      for (const MicroBatch& part : batch.micro_batches()) {
        stream.synchronize();
        EXPECT_EQ(part.number(), parts++);
        EXPECT_EQ(part.first(), samples);
        EXPECT_GT(part.size(), 0U);
        EXPECT_EQ(part.indices().size(), part.size());
        EXPECT_EQ(part.valid().size(), part.size());
        EXPECT_EQ(part.images().shape[0], part.size());
        const auto labels = part.labels().as<std::int64_t>();
        for (std::size_t sample = 0; sample < part.size(); ++sample)
          EXPECT_EQ(labels[sample], testing::MemoryDataset::label_of(part.indices()[sample]));
        samples += part.size();
      }
      EXPECT_EQ(samples, batch.size());
      EXPECT_EQ(parts, batch.micro_batches().size());
      EXPECT_LE(parts, micro_batches);
      if (batch.size() == 8) {
        EXPECT_EQ(parts, micro_batches);
      }
      // The whole batch consists of its micro-batches side by side.
      const testing::BatchContents whole = testing::contents(batch);
      testing::expect_positions(whole, run.sampler(), run.options.seed, batch.number() * 8);
    }
  }
}

TEST_P(BatchParts, AreTakenBeforeTheWhole) {
  SmallRun run(20, GetParam());
  run.options.slots.micro_batches = 2;
  Pipeline pipeline = run.pipeline();
  HostStream stream;
  const Batch batch = pipeline.next_in_micro_batches(stream);
  EXPECT_EQ(error_of([&] { (void)batch.images(); }).code(), ErrorCode::invalid_argument);
  for (const MicroBatch& part : batch.micro_batches()) (void)part;
  EXPECT_EQ(batch.images().shape[0], 8U);
}

TEST_P(BatchParts, OfAWholeBatchCanBeLookedAtAgain) {
  SmallRun run(20, GetParam());
  run.options.slots.micro_batches = 4;
  Pipeline pipeline = run.pipeline();
  const Batch batch = pipeline.next();
  for (int round = 0; round < 2; ++round) {
    std::size_t samples = 0;
    for (const MicroBatch& part : batch.micro_batches()) {
      EXPECT_EQ(part.images().data, static_cast<std::byte*>(batch.images().data) + samples * 96);
      samples += part.size();
    }
    EXPECT_EQ(samples, 8U);
  }
}

}  // namespace
}  // namespace millrace
