// SPDX-License-Identifier: Apache-2.0
//
// Tests of streams that fail, block or have bad records, and of the memory for records.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "loader/pipeline/stream/fake_stream.h"
#include "support/small_run.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using testing::BatchContents;
using ::testing::Contains;
using testing::error_of;
using testing::eventually;
using testing::Gate;
using ::testing::HasSubstr;
using testing::MemoryStream;
using testing::OpensAtEnd;
using testing::Stopwatch;
using testing::StreamRun;
using testing::take;

TEST(PipelineStreamFaults, EmptyStreamIsAnError) {
  StreamRun run(0);
  Pipeline pipeline = run.pipeline();
  const Error error = error_of([&] { (void)pipeline.next(); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.what(), HasSubstr("brook: the stream is empty (0 records"));
}

TEST(PipelineStreamFaults, StreamShorterThanABatchIsAnErrorIfThatIsDropped) {
  StreamRun run(5);
  run.options.last_batch = LastBatch::drop;
  Pipeline pipeline = run.pipeline();
  EXPECT_THAT(error_of([&] { (void)pipeline.next(); }).what(),
              HasSubstr("an epoch has 5 samples, fewer than one global batch of 8"));
}

TEST(PipelineStreamFaults, ErrorOfTheStreamEndsTheRunAndNamesTheRecord) {
  for (const bool own : {false, true}) {
    StreamRun run(100);
    run.stream->on_next = [own](std::uint64_t record) {
      if (record < 70) return;
      if (own) throw Error(ErrorCode::io, "the line is cut");
      throw std::runtime_error("the line is cut");
    };
    Pipeline pipeline = run.pipeline();
    const Error error = error_of([&] {
      while (pipeline.next()) continue;
    });
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_EQ(error.record(), 70U);
    EXPECT_EQ(error.stage(), "read");
    EXPECT_STREQ(error.what(), "brook: record 70 of epoch 0 cannot be read: the line is cut");
    EXPECT_EQ(error_of([&] { (void)pipeline.next(); }).code(), ErrorCode::io) << "it stays";
  }
}

TEST(PipelineStreamFaults, BatchesBeforeTheErrorCanBeTaken) {
  StreamRun run(100);
  run.options.slots.prefetch = 1;
  run.stream->on_next = [](std::uint64_t record) {
    if (record == 70) throw std::runtime_error("the line is cut");
  };
  Pipeline pipeline = run.pipeline();
  // The error comes when the planner needs the window of record 64.
  for (int number = 0; number < 7; ++number) EXPECT_TRUE(pipeline.next());
}

/// Lets a stream wait at a record, as for a slow pipe.
struct SlowStream {
  explicit SlowStream(StreamRun& run, std::uint64_t at) {
    run.stream->on_next = [this, at](std::uint64_t record) {
      if (record == at && !gate.pass()) throw std::runtime_error("the gate stayed closed");
      if (record == at) throw std::runtime_error("interrupted");
    };
  }
  bool waits() {
    return eventually([this] { return gate.arrived() > 0; });
  }
  Gate gate;
};

TEST(PipelineStreamFaults, StopInterruptsAStreamThatWaits) {
  StreamRun run(100);
  SlowStream slow(run, 40);
  run.stream->on_interrupt = [&] { slow.gate.open(); };
  run.options.debug.stop_timeout = testing::patience;
  Pipeline pipeline = run.pipeline();
  ASSERT_TRUE(slow.waits());
  std::future<Error> waiting = std::async(std::launch::async, [&] {
    return error_of([&] {
      while (pipeline.next()) continue;
    });
  });
  pipeline.stop();
  EXPECT_EQ(waiting.get().code(), ErrorCode::stopped);
}

TEST(PipelineStreamFaults, StopInterruptsAStreamThatWaitsWhileARunResumes) {
  StreamRun whole(100);
  Pipeline reference = whole.pipeline();
  const State state = take(reference, 10).back().after;
  ASSERT_EQ(state.window, 64U);
  for (int time = 0; time < 30; ++time) {
    StreamRun run(100);
    run.options.resume.from = state;
    SlowStream slow(run, 40);
    run.stream->on_interrupt = [&] { slow.gate.open(); };
    run.options.debug.stop_timeout = testing::patience;
    Pipeline pipeline = run.pipeline();
    if (time == 0) {
      ASSERT_TRUE(slow.waits());
    }
    pipeline.stop();  // later on, the reading thread may not have begun yet
    EXPECT_LE(run.stream->given(), 40U);
  }
}

TEST(PipelineStreamFaults, StopDoesNotWaitForAStreamThatHangs) {
  StreamRun run(100);
  SlowStream slow(run, 40);
  const OpensAtEnd opens(slow.gate);
  run.options.debug.stop_timeout = std::chrono::milliseconds(50);
  Pipeline pipeline = run.pipeline();
  ASSERT_TRUE(slow.waits());
  std::optional<Error> error;  // other threads may end late, and would be named first
  EXPECT_TRUE(eventually([&] {
    error = error_of([&] { pipeline.stop(); });
    return std::string(error->what()).find("reading the stream brook does not return") !=
           std::string::npos;
  }));
  EXPECT_EQ(error->code(), ErrorCode::timeout);
  EXPECT_EQ(error->stage(), "read");
}

TEST(PipelineStreamFaults, TimeoutOfNextPassesWhileTheStreamWaits) {
  StreamRun run(100);
  SlowStream slow(run, 4);
  const OpensAtEnd opens(slow.gate);
  run.stream->on_interrupt = [&] { slow.gate.open(); };
  Pipeline pipeline = run.pipeline();
  const Error error =
      error_of([&] { (void)pipeline.next({.timeout = std::chrono::milliseconds(20)}); });
  EXPECT_EQ(error.code(), ErrorCode::timeout);
}

/// Makes every third record bad.
StreamRun run_with_bad_records(BadRecords policy) {
  StreamRun run(60);
  MemoryStream* stream = run.stream.get();
  run.stream->on_next = [stream](std::uint64_t record) {
    if (record % 3 != 1 || record >= 60) return;
    stream->pass_bad();
    throw Error(ErrorCode::bad_record, "it is smudged");
  };
  run.options.bad_records = policy;
  return run;
}

TEST(PipelineStreamFaults, BadRecordsFollowThePolicy) {
  Pipeline fails = run_with_bad_records(BadRecords::fail).pipeline();
  Error error = error_of([&] {
    while (fails.next()) continue;
  });
  EXPECT_EQ(error.code(), ErrorCode::bad_record);
  EXPECT_THAT(error.what(), HasSubstr("of brook is bad: it is smudged"));

  Pipeline marks = run_with_bad_records(BadRecords::mark).pipeline();
  std::size_t marked = 0;
  for (const BatchContents& batch : take(marks))
    for (std::size_t sample = 0; sample < batch.indices.size(); ++sample) {
      EXPECT_EQ(batch.valid[sample] == 0, batch.indices[sample] % 3 == 1);
      marked += batch.valid[sample] == 0 ? 1 : 0;
    }
  EXPECT_EQ(marked, 20U);
  EXPECT_EQ(marks.report().bad_records, 20U);

  std::vector<BatchContents> reference;
  for (const unsigned workers : {1U, 4U}) {
    StreamRun run = run_with_bad_records(BadRecords::replace);
    run.workers(workers);
    Pipeline replaces = run.pipeline();
    const std::vector<BatchContents> batches = take(replaces);
    std::uint64_t position = 0;
    for (const BatchContents& batch : batches)
      for (const std::uint64_t record : batch.indices) {
        EXPECT_NE(record % 3, 1U);
        EXPECT_EQ(record / 32, position++ / 32) << "a replacement is of the same window";
      }
    if (reference.empty()) reference = batches;
    EXPECT_EQ(batches, reference);
  }
}

TEST(PipelineStreamFaults, BadRecordsAreSkippedWhenARunResumes) {
  Pipeline whole = run_with_bad_records(BadRecords::mark).pipeline();
  const std::vector<BatchContents> reference = take(whole);
  StreamRun resumed = run_with_bad_records(BadRecords::mark);
  resumed.options.resume.from = reference[4].after;
  Pipeline pipeline = resumed.pipeline();
  EXPECT_EQ(take(pipeline), std::vector<BatchContents>(reference.begin() + 5, reference.end()));
}

TEST(PipelineStreamFaults, RecordsInMemoryAreLimited) {
  StreamRun run(2000);
  run.options.slots.prefetch = 2;
  run.options.epochs = 1;
  Pipeline pipeline = run.pipeline();
  // Two planned batches, the one after them and a record more lie in at most two windows of 32. One
  // window more is read ahead.
  ASSERT_TRUE(eventually([&] { return run.stream->given() >= 64; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(run.stream->given(), 96U);
  EXPECT_GE(pipeline.memory().scratch_limit_bytes, run.windows.memory_bytes);
}

TEST(PipelineStreamFaults, MemoryEndsWindowsEarly) {
  StreamRun run(500);
  run.stream->payload_bytes = 1000;
  run.windows = {.window_records = 300, .memory_bytes = 100'000};
  Pipeline pipeline = run.pipeline();
  std::uint64_t most = 0;
  std::uint64_t taken = 0;
  while (const Batch batch = pipeline.next()) {
    taken += batch.size();
    most = std::max(most, run.stream->given() - taken);
  }
  EXPECT_EQ(taken, 500U);
  // At most 100 records have room, and one more is being read. Batches of 4 slots are taken late.
  EXPECT_LE(most, 101U + 4 * 8);
  EXPECT_THAT(pipeline.report().warnings,
              Contains(HasSubstr("shuffle windows have fewer than window_records (300) records")));
}

TEST(PipelineStreamFaults, BatchThatDoesNotFitInMemoryIsAnError) {
  StreamRun run(500);
  run.stream->payload_bytes = 1000;
  run.windows = {.window_records = 300, .memory_bytes = 5'000};
  Pipeline pipeline = run.pipeline();
  const Error error = error_of([&] { (void)pipeline.next(); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.what(),
              HasSubstr("brook: a batch and its windows take more than memory_bytes (5000)"));
}

TEST(PipelineStreamFaults, HeldBatchesDoNotHoldRecords) {
  StreamRun run(500);
  run.stream->payload_bytes = 1000;
  run.windows = {.window_records = 300, .memory_bytes = 40'000};
  run.options.slots.prefetch = 8;
  Pipeline pipeline = run.pipeline();
  std::vector<Batch> held;
  for (int number = 0; number < 8; ++number) {
    held.push_back(pipeline.next());
    ASSERT_TRUE(held.back());
  }
}

TEST(PipelineStreamFaults, SlowStreamIsAStall) {
  const auto stalls = [](const Report& report) {
    return report.stall.total_ms > 0.5e3 * report.seconds &&
           report.ahead.total_ms < 0.1e3 * report.seconds && report.verdict.stage == "stream";
  };
  const auto run_slowly = [](int factor) {
    StreamRun run(200);
    run.stream->on_next = [factor](std::uint64_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(factor));
    };
    Pipeline pipeline = run.pipeline();
    // The time to start does not count.
    EXPECT_TRUE(pipeline.next());
    pipeline.restart_report();
    while (pipeline.next()) continue;
    const Report report = pipeline.report();
    pipeline.restart_report();
    for (const StageReport& stage : pipeline.report().stages)
      if (stage.name == "stream") {
        EXPECT_EQ(stage.busy_seconds, 0);
      }
    return report;
  };
  const Report report = testing::best_of_longer(run_slowly, stalls);
  EXPECT_GT(report.stall.total_ms, 0.5e3 * report.seconds);
  EXPECT_LT(report.ahead.total_ms, 0.1e3 * report.seconds);
  EXPECT_EQ(report.verdict.stage, "stream");
  EXPECT_THAT(report.verdict.text, HasSubstr("the stream bounds the run: its thread is busy"));
}

TEST(PipelineStreamFaults, CacheHasNoEffect) {
  StreamRun run(50);
  run.options.cache_bytes = 1 << 20;
  Pipeline pipeline = run.pipeline();
  EXPECT_THAT(pipeline.report().warnings, Contains(HasSubstr("cache_bytes has no effect")));
}

}  // namespace
}  // namespace millrace
