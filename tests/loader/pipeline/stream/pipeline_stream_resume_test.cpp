// SPDX-License-Identifier: Apache-2.0
//
// Tests of resuming a run over a stream.
#include <gmock/gmock.h>

#include <vector>

#include "loader/pipeline/stream/fake_stream.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using testing::BatchContents;
using testing::epoch_positions;
using testing::error_of;
using ::testing::HasSubstr;
using testing::MemoryStream;
using testing::StreamRun;
using testing::take;

/// A run as if by a new process: with a stream of its own.
StreamRun new_run(LastBatch last_batch, bool ends_windows_early) {
  StreamRun run(101);
  run.stream->restarts = true;
  run.stream->skips_at_once = true;
  run.options.last_batch = last_batch;
  run.options.epochs = 3;
  run.windows.window_records = 20;
  if (ends_windows_early) {
    run.stream->payload_bytes = 3000;
    run.windows.memory_bytes = 150'000;  // windows of 13 records
  }
  return run;
}

std::vector<BatchContents> behind(const std::vector<BatchContents>& batches, std::size_t number) {
  return {batches.begin() + static_cast<std::ptrdiff_t>(number) + 1, batches.end()};
}

TEST(PipelineStreamResume, ContinuesWithTheVeryNextBatch) {
  for (const LastBatch last_batch : {LastBatch::drop, LastBatch::partial, LastBatch::pad})
    for (const bool ends_early : {false, true}) {
      Pipeline whole = new_run(last_batch, ends_early).pipeline();
      const auto reference = take(whole);
      ASSERT_EQ(reference.size(), last_batch == LastBatch::drop ? 36U : 39U);
      for (std::size_t number = 0; number < reference.size(); ++number) {
        SCOPED_TRACE(::testing::Message() << "after batch " << number << ", last_batch "
                                          << static_cast<int>(last_batch) << ", " << ends_early);
        StreamRun resumed = new_run(last_batch, ends_early);
        const State& state = reference[number].after;
        resumed.options.resume.from = State::from_json(state.to_json());
        Pipeline pipeline = resumed.pipeline();
        EXPECT_EQ(pipeline.state(), state);
        ASSERT_EQ(take(pipeline), behind(reference, number));
        const std::uint64_t record = state.position % epoch_positions;
        if (number + 1 < reference.size()) {
          EXPECT_EQ(resumed.stream->skipped(), state.window.value_or(0));
          EXPECT_LE(state.window.value_or(0), record);
          EXPECT_LT(record - state.window.value_or(0), ends_early ? 13 : 20);
        }
      }
    }
}

TEST(PipelineStreamResume, WithoutAWindowReadsFromTheBeginning) {
  Pipeline whole = new_run(LastBatch::partial, true).pipeline();
  const auto reference = take(whole);
  StreamRun resumed = new_run(LastBatch::partial, true);
  State state = reference[4].after;
  ASSERT_TRUE(state.window);
  state.window.reset();
  resumed.options.resume.from = state;
  Pipeline pipeline = resumed.pipeline();
  EXPECT_EQ(take(pipeline), behind(reference, 4));
  EXPECT_EQ(resumed.stream->skipped(), 0U);
}

TEST(PipelineStreamResume, ReadsOverMoreThanItsMemoryFromTheBeginning) {
  const auto new_long_run = [] {
    StreamRun run(400);
    run.stream->payload_bytes = 10'000;  // 4 MB in all
    return run;
  };
  const StreamRun run = new_long_run();
  Pipeline whole = run.pipeline();
  const auto reference = take(whole);
  StreamRun resumed = new_long_run();
  State state = reference[40].after;
  state.window.reset();
  resumed.options.resume.from = state;
  Pipeline pipeline = resumed.pipeline();
  EXPECT_EQ(take(pipeline), behind(reference, 40));
}

TEST(PipelineStreamResume, OnAnotherNumberOfRanks) {
  const auto run_of = [](std::uint32_t rank, std::uint32_t world) {
    StreamRun run = new_run(LastBatch::partial, false);
    run.options.ranks = {.this_process = {.rank = rank, .world = world}, .global_batch_size = 10};
    return run;
  };
  Pipeline whole = run_of(0, 1).pipeline();
  const auto reference = take(whole);
  for (const std::uint32_t rank : {0U, 1U}) {
    StreamRun resumed = run_of(rank, 2);
    resumed.options.resume.from = reference[3].after;
    Pipeline pipeline = resumed.pipeline();
    const BatchContents next = take(pipeline, 1).at(0);
    const auto begin = reference[4].indices.begin() + 5 * rank;
    EXPECT_EQ(next.indices, std::vector<std::uint64_t>(begin, begin + 5));
    EXPECT_EQ(next.after, reference[4].after);
  }
}

TEST(PipelineStreamResume, AfterTheOnlyPassIsEmpty) {
  StreamRun run(30);
  Pipeline pipeline = run.pipeline();
  const State end = take(pipeline).back().after;
  StreamRun resumed(30);
  resumed.options.resume.from = end;
  Pipeline after = resumed.pipeline();
  EXPECT_FALSE(after.next());
  EXPECT_EQ(resumed.stream->given(), 0U) << "nothing is read";
}

TEST(PipelineStreamResume, RefusesOtherWindowsAndShorterStreams) {
  StreamRun run(101);
  Pipeline pipeline = run.pipeline();
  const auto reference = take(pipeline);
  const State state = reference[9].after;
  ASSERT_EQ(state.window, 64U);

  StreamRun other(101);
  other.options.resume.from = state;
  other.windows.window_records = 16;
  Error error = error_of([&] { (void)other.pipeline(); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.what(), HasSubstr("the order of records"));

  other.windows.window_records = 32;
  other.options.resume.from->window = 90;
  error = error_of([&] { (void)other.pipeline(); });
  EXPECT_THAT(error.what(), HasSubstr("window 90, which lies behind record 80"));

  // It ends before the window, and after it.
  for (const std::uint64_t records : {50U, 70U}) {
    StreamRun shorter(records);
    shorter.options.resume.from = state;
    Pipeline resumed = shorter.pipeline();
    error = error_of([&] { (void)resumed.next(); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("brook"));
    if (records == 50) {
      EXPECT_EQ(error.record(), 64U);
      EXPECT_THAT(error.what(), HasSubstr("record 64 of epoch 0 cannot be read: "));
      EXPECT_THAT(error.what(), HasSubstr("ends with 14 records still to skip"));
    }
    EXPECT_THAT(error.what(), HasSubstr("resume with the stream that the state was saved from"));
  }
}

}  // namespace
}  // namespace millrace
