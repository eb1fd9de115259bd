// SPDX-License-Identifier: Apache-2.0
//
// Tests of resuming a run, and of sharing a run among ranks.
#include <gmock/gmock.h>
#include <millrace/pipeline.h>

#include <vector>

#include "support/small_run.h"

namespace millrace {
namespace {

using testing::BatchContents;
using testing::error_of;
using ::testing::HasSubstr;
using testing::SmallRun;
using testing::take;
using testing::uneven_run;

TEST(PipelineResume, StateAfterABatchContinuesWithTheVeryNextOne) {
  for (const LastBatch last_batch : {LastBatch::drop, LastBatch::partial, LastBatch::pad}) {
    SmallRun run = uneven_run(29);
    run.options.last_batch = last_batch;
    run.options.epochs = 3;
    Pipeline whole = run.pipeline();
    const auto reference = take(whole);
    for (std::size_t number = 0; number < reference.size(); ++number) {
      SCOPED_TRACE(::testing::Message()
                   << "after batch " << number << ", last_batch " << static_cast<int>(last_batch));
      SmallRun resumed = run;
      resumed.options.resume.from = reference[number].after;
      Pipeline pipeline = resumed.pipeline();
      EXPECT_EQ(pipeline.state(), reference[number].after);
      const std::vector<BatchContents> expected(
          reference.begin() + static_cast<std::ptrdiff_t>(number) + 1, reference.end());
      ASSERT_EQ(take(pipeline), expected);
    }
  }
}

TEST(PipelineResume, StateIsThatOfTheLastBatchHandedOut) {
  SmallRun run(29);
  Pipeline pipeline = run.pipeline();
  EXPECT_EQ(pipeline.state().seed, 42U);
  EXPECT_EQ(pipeline.state().position, 0U) << "batches that were only made do not count";
  for (int n = 0; n < 4; ++n) {
    const Batch batch = pipeline.next();
    EXPECT_EQ(pipeline.state(), batch.state_after());
  }
  EXPECT_FALSE(pipeline.next());
  EXPECT_EQ(pipeline.state().position, 29U);
}

TEST(PipelineResume, RefusesAPositionWhereNoBatchBegins) {
  for (const std::uint64_t position : {1U, 7U, 28U, 30U, 36U}) {
    SmallRun run(29);
    run.options.epochs = 5;
    run.options.resume.from = State{.seed = run.options.seed, .position = position};
    const Error error = error_of([&] { (void)run.pipeline(); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << position;
    EXPECT_THAT(error.what(), HasSubstr("position"));
  }
}

TEST(PipelineResume, AtTheRunsEndIsEmpty) {
  SmallRun run(29);
  run.options.resume.from = State{.seed = run.options.seed, .position = 29};
  Pipeline pipeline = run.pipeline();
  EXPECT_FALSE(pipeline.next());
}

struct Ranks {
  std::uint64_t records;
  std::uint32_t world;
  LastBatch last_batch;
};
class PipelineRanks : public ::testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(
    Shapes, PipelineRanks,
    ::testing::Values(Ranks{48, 3, LastBatch::partial}, Ranks{53, 3, LastBatch::partial},
                      Ranks{50, 4, LastBatch::partial}, Ranks{49, 3, LastBatch::partial},
                      Ranks{53, 3, LastBatch::pad}, Ranks{50, 4, LastBatch::pad},
                      Ranks{5, 2, LastBatch::pad}, Ranks{53, 3, LastBatch::drop}));

// Side by side the ranks' pieces are the global batches, without repetition or gap, and all ranks
// have the same number of batches.
TEST_P(PipelineRanks, DealTheGlobalBatchesInConsecutivePieces) {
  const Ranks ranks = GetParam();
  constexpr std::size_t batch_size = 4;
  std::vector<std::vector<BatchContents>> of_rank;
  for (std::uint32_t rank = 0; rank < ranks.world; ++rank) {
    SmallRun run = uneven_run(ranks.records, rank % 2 == 1);
    run.options.batch_size = batch_size;
    run.options.epochs = 2;
    run.options.ranks.this_process.world = ranks.world;
    run.options.ranks.this_process.rank = rank;
    run.options.last_batch = ranks.last_batch;
    Pipeline pipeline = run.pipeline();
    of_rank.push_back(take(pipeline));
    ASSERT_EQ(of_rank[rank].size(), of_rank[0].size())
        << "a rank that has fewer batches hangs the others";
  }
  const Sampler sampler(Order::shuffled(), ranks.records, 42);
  const std::uint64_t global = batch_size * ranks.world;
  std::uint64_t position = 0;
  for (std::size_t number = 0; number < of_rank[0].size(); ++number) {
    SCOPED_TRACE(::testing::Message() << "global batch " << number);
    std::size_t valid = 0;
    for (std::uint32_t rank = 0; rank < ranks.world; ++rank) {
      const BatchContents& batch = of_rank[rank][number];
      EXPECT_EQ(batch.number, number);
      EXPECT_EQ(batch.after.position, of_rank[0][number].after.position);
      EXPECT_EQ(batch.global_size, of_rank[0][number].global_size);
      for (std::size_t sample = 0; sample < batch.indices.size(); ++sample) {
        if (batch.valid[sample] == 0) continue;
        EXPECT_TRUE(
            testing::is_stamped(batch, sample, sampler(position), Random(42, position).bits64()))
            << position;
        ++position;
        ++valid;
      }
      if (ranks.last_batch != LastBatch::partial || !batch.last_in_epoch) {
        EXPECT_EQ(batch.indices.size(), batch_size);
      }
    }
    EXPECT_EQ(valid, of_rank[0][number].global_size);
    if (!of_rank[0][number].last_in_epoch) {
      EXPECT_EQ(valid, global);
    }
    if (of_rank[0][number].last_in_epoch) {
      if (ranks.last_batch == LastBatch::drop)
        position += ranks.records % global;
      else
        EXPECT_EQ(position % ranks.records, 0U);
    }
    EXPECT_EQ(of_rank[0][number].after.position, position);
  }
  EXPECT_EQ(position, 2 * ranks.records);
}

}  // namespace
}  // namespace millrace
