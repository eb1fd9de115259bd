// SPDX-License-Identifier: Apache-2.0
//
// Tests of a stream that is being captured into a graph: it can neither take nor release batches.
// The error for taking ends neither the run nor a batch.
#include <gmock/gmock.h>
#include <millrace/pipeline.h>

#include <memory>

#include "support/fake_device.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::HookDevice;
using testing::HookStream;
using testing::patience;
using testing::SmallRun;

class PipelineCapture : public ::testing::TestWithParam<bool> {
 protected:
  /// Expects an error that says what to do and does not end the run.
  template <typename Function>
  void expect_refused(Function function) {
    stream->set_capturing(true);
    const Error error = error_of(function);
    stream->set_capturing(false);
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(),
                HasSubstr("take the batch before the capture begins, and let it go after it ends"));
  }

  std::shared_ptr<HookDevice> device = std::make_shared<HookDevice>(GetParam());
  std::unique_ptr<HookStream> stream = device->trainer_stream();
  SmallRun run = [this] {
    SmallRun made(80);
    made.device = device;
    made.options.slots.micro_batches = 2;
    return made;
  }();
};
INSTANTIATE_TEST_SUITE_P(Copies, PipelineCapture, ::testing::Bool());

TEST_P(PipelineCapture, TakesNoBatch) {
  Pipeline pipeline = run.pipeline();
  for (std::uint64_t number = 0; number < 10; ++number) {
    expect_refused([&] { (void)pipeline.next(*stream); });
    expect_refused([&] { (void)pipeline.next(*stream, patience); });
    expect_refused([&] { (void)pipeline.next_in_micro_batches(*stream); });
    const Batch batch = pipeline.next(*stream, patience);
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch.number(), number) << "a batch was lost";
    stream->synchronize();
    testing::expect_positions(testing::contents(batch), run.sampler(), 42, number * 8);
  }
}

TEST_P(PipelineCapture, TakesNoPart) {
  Pipeline pipeline = run.pipeline();
  for (std::uint64_t number = 0; const Batch batch = pipeline.next_in_micro_batches(*stream);
       ++number) {
    const MicroBatchRange parts = batch.micro_batches();
    auto iterator = parts.begin();
    expect_refused([&] { (void)*iterator; });
    (void)*iterator;
    stream->set_capturing(true);
    EXPECT_EQ((*iterator).number(), 0U) << "it was taken before";
    stream->set_capturing(false);
    ++iterator;
    expect_refused([&] { (void)*iterator; });
    (void)*iterator;
    stream->synchronize();
    EXPECT_EQ(batch.number(), number);
    testing::expect_positions(testing::contents(batch), run.sampler(), 42, number * 8);
  }
}

TEST_P(PipelineCapture, IsNoFurtherStream) {
  Pipeline pipeline = run.pipeline();
  const auto other = device->trainer_stream();
  while (const Batch batch = pipeline.next(*other, patience)) {
    expect_refused([&] { batch.record_stream(*stream); });
    batch.record_stream(*stream);
  }
}

// The release cannot throw, so the next call does.
TEST_P(PipelineCapture, LetsNoBatchGo) {
  Pipeline pipeline = run.pipeline();
  Batch batch = pipeline.next(*stream, patience);
  stream->set_capturing(true);
  { const Batch copy = batch; }  // a copy, not the last owner
  stream->set_capturing(false);
  Batch second = pipeline.next(*stream, patience);
  ASSERT_TRUE(second);
  stream->set_capturing(true);
  batch.reset();
  stream->set_capturing(false);
  for (int again = 0; again < 2; ++again) {
    const Error error = error_of([&] {
      for (int n = 0; n < 20; ++n) (void)pipeline.next(*stream, patience);
    });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("a batch was let go while the stream is being captured"));
  }
}

}  // namespace
}  // namespace millrace
