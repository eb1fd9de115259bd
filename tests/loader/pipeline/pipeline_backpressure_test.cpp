// SPDX-License-Identifier: Apache-2.0
//
// Tests of how far the pipeline runs ahead, and that a slot is not written while it is read.
#include <gmock/gmock.h>
#include <millrace/pipeline.h>

#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "support/small_run.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using testing::best_of_three;
using testing::error_of;
using testing::eventually;
using testing::Gate;
using ::testing::HasSubstr;
using testing::OpensAtEnd;
using testing::patience;
using testing::SmallRun;

class PipelineBackpressure : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Copies, PipelineBackpressure, ::testing::Bool());

TEST_P(PipelineBackpressure, FillsItsSlotsAndNoMore) {
  for (const std::size_t prefetch : {1U, 3U}) {
    SmallRun run(4000, GetParam());
    run.options.slots.prefetch = prefetch;
    Pipeline pipeline = run.pipeline();
    const std::uint64_t most = 8 * (prefetch + (GetParam() ? 2 : 0));
    EXPECT_TRUE(eventually([&] { return run.transform->made() == most; }));
    std::this_thread::sleep_for(60ms);
    EXPECT_EQ(run.transform->begun(), most);
    EXPECT_TRUE(eventually([&] { return pipeline.report().samples_made == most; }));
    EXPECT_EQ(pipeline.report().batches, 0U);
  }
}

TEST_P(PipelineBackpressure, NeverRunsFurtherAheadThanItHasSlots) {
  SmallRun run(2400, GetParam());
  run.options.order = Order::sequential();  // so that the record identifies its batch
  run.options.slots.prefetch = 3;
  const std::uint64_t slots = 3 + (GetParam() ? 2 : 0);
  std::atomic<std::uint64_t> asked{0};
  std::atomic<bool> too_far{false};
  run.transform->on_begin = [&](const Record& record) {
    if (record.index() / 8 >= asked + slots) too_far = true;
  };
  Pipeline pipeline = run.pipeline();
  HostStream stream;
  for (;;) {
    ++asked;
    if (!pipeline.next(stream, patience)) break;
    if (asked % 50 == 0) std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(asked, 301U);
  EXPECT_FALSE(too_far);
}

// Each batch is released at once, while its step on the stream reads it long after.
TEST_P(PipelineBackpressure, ALateStepStillSeesItsOwnData) {
  for (const std::size_t prefetch : {1U, 2U, 4U}) {
    SmallRun run(8 * 40, GetParam());
    run.options.slots.prefetch = prefetch;
    std::atomic<int> wrong{0};
    std::atomic<int> checked{0};
    Pipeline pipeline = run.pipeline();
    {
      HostStream stream;
      while (Batch batch = pipeline.next(stream, patience)) {
        stream.step(1ms);
        const std::uint64_t number = batch.number();
        const auto labels = batch.labels().as<std::int64_t>();
        const auto draws = batch["draw"].as<std::uint64_t>();
        const auto images = batch.images().as<std::uint8_t>();
        stream.launch([&wrong, &checked, number, labels, draws, images, sampler = run.sampler()] {
          for (std::size_t sample = 0; sample < 8; ++sample) {
            const std::uint64_t position = number * 8 + sample;
            const std::uint64_t draw = Random(42, position).bits64();
            bool same = draws[sample] == draw &&
                        labels[sample] == testing::MemoryDataset::label_of(sampler(position));
            for (std::size_t place = 0; place < 96; ++place)
              same = same && images[sample * 96 + place] ==
                                 static_cast<std::uint8_t>(testing::StampTransform::pixel(
                                     sampler(position), draw, place));
            wrong += same ? 0 : 1;
          }
          ++checked;
        });
      }
      stream.synchronize();
    }
    EXPECT_EQ(checked, 40);
    EXPECT_EQ(wrong, 0) << "prefetch " << prefetch;
  }
}

// While the stream is blocked, next() returns batches until the slots are used up, then waits: that
// time is ahead, not stall.
TEST_P(PipelineBackpressure, TellsWaitingForSlotsFromWaitingForData) {
  const auto wait_for_a_slot = [] {
    SmallRun run(4000, GetParam());
    run.options.slots.prefetch = 2;
    Pipeline pipeline = run.pipeline();
    Gate gate;
    HostStream stream;
    const OpensAtEnd opens(gate);
    const std::uint64_t slots = GetParam() ? 2 + 2 : 2;
    EXPECT_TRUE(eventually([&] { return run.transform->made() == slots * 8; }));
    stream.launch([&gate] { EXPECT_TRUE(gate.pass()); });
    std::uint64_t taken = 0;
    try {
      for (; taken < 10; ++taken)
        (void)pipeline.next(stream, taken < slots / 2 ? patience : nanoseconds(300ms));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::timeout);
    }
    EXPECT_GE(taken, slots / 2);
    EXPECT_LE(taken, slots);
    pipeline.restart_report();
    std::jthread opener([&gate] {
      std::this_thread::sleep_for(200ms);
      gate.open();
    });
    (void)pipeline.next(stream, patience);
    return pipeline.report();
  };
  const Report report = best_of_three(wait_for_a_slot, [](const Report& waited) {
    return waited.ahead.max_ms >= 100 && waited.stall.max_ms < waited.ahead.max_ms;
  });
  EXPECT_EQ(report.ahead.count, 1U);
  EXPECT_GE(report.ahead.max_ms, 100);
  EXPECT_LT(report.stall.max_ms, report.ahead.max_ms);
}

TEST_P(PipelineBackpressure, TellsWaitingForDataFromWaitingForSlots) {
  const auto wait_for_data = [] {
    SmallRun run(4000, GetParam());
    Gate gate;
    run.transform->on_begin = [&gate](const Record&) { EXPECT_TRUE(gate.pass()); };
    Pipeline pipeline = run.pipeline();
    const OpensAtEnd opens(gate);
    HostStream stream;
    std::jthread opener([&gate] {
      std::this_thread::sleep_for(200ms);
      gate.open();
    });
    (void)pipeline.next(stream, patience);
    return pipeline.report();
  };
  const Report report = best_of_three(wait_for_data, [](const Report& waited) {
    return waited.stall.max_ms >= 100 && waited.ahead.max_ms < waited.stall.max_ms;
  });
  EXPECT_EQ(report.stall.count, 1U);
  EXPECT_GE(report.stall.max_ms, 100);
  EXPECT_LT(report.ahead.max_ms, report.stall.max_ms);
}

}  // namespace
}  // namespace millrace
