// SPDX-License-Identifier: Apache-2.0
//
// Tests of the ranges that a profiler gets: they nest and end, with the right names and batches.
#include <gmock/gmock.h>
#include <millrace/pipeline.h>

#include <map>
#include <set>
#include <string>

#include "loader/pipeline/user_code/fake_profiler.h"
#include "support/fake_device.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using testing::FakeProfiler;
using testing::HookDevice;
using testing::patience;
using testing::SmallRun;

class PipelineProfiler : public ::testing::TestWithParam<std::size_t> {
 protected:
  SmallRun run_on(std::uint64_t records) {
    SmallRun run(records);
    run.device =
        std::make_shared<HookDevice>(true, std::function<void(testing::DeviceCall)>{}, &profiler);
    run.options.slots.micro_batches = GetParam();
    run.workers(2);
    return run;
  }
  FakeProfiler profiler;
};
INSTANTIATE_TEST_SUITE_P(Parts, PipelineProfiler, ::testing::Values(1U, 2U));

TEST_P(PipelineProfiler, IsToldWhatEachThreadDoes) {
  const SmallRun run = run_on(40);
  {
    Pipeline pipeline = run.pipeline();
    while (pipeline.next()) continue;
  }
  profiler.expect_all_ended();
  std::map<std::uint64_t, std::size_t> once;
  std::map<std::uint64_t, std::size_t> per_sample;
  for (std::uint64_t batch = 0; batch < 5; ++batch) {
    once[batch] = 1;
    per_sample[batch] = 8;
  }
  EXPECT_EQ(profiler.count("plan"), once);
  for (const char* stage : {"read", "stamp", "finish"})
    EXPECT_EQ(profiler.count(stage), per_sample) << stage;
  EXPECT_EQ(profiler.count("upload").size(), 5U);
  once[5] = 1;  // the end of the run
  EXPECT_EQ(profiler.count("next"), once);
  for (const FakeProfiler::Range& range : profiler.ranges()) {
    EXPECT_THAT((std::set<std::string>{"plan", "read", "stamp", "finish", "upload", "next"}),
                ::testing::Contains(range.name));
    EXPECT_EQ(range.outer, "") << range.name << " is within it";
  }
}

TEST_P(PipelineProfiler, IsToldOfTheEndOfSamplesThatAreBad) {
  SmallRun run = run_on(40);
  run.options.bad_records = BadRecords::mark;
  run.transform->on_end = [](const Record& record) {
    return record.index() % 3 == 0 ? Status::bad("planted") : Status::ok();
  };
  run.transform->on_begin = [](const Record& record) {
    if (record.index() % 3 == 1) throw Error(ErrorCode::bad_record, "planted");
  };
  {
    Pipeline pipeline = run.pipeline();
    while (pipeline.next()) continue;
    EXPECT_GT(pipeline.report().bad_records, 20U);
  }
  profiler.expect_all_ended();
}

TEST_P(PipelineProfiler, IsToldOfTheEndOfWhatThrows) {
  for (const bool reading : {false, true}) {
    SmallRun run = run_on(400);
    const auto plant = [](std::uint64_t record) {
      if (record % 50 == 7) throw std::runtime_error("planted");
    };
    if (reading)
      run.dataset->on_read = plant;
    else
      run.transform->on_begin = [plant](const Record& record) { plant(record.index()); };
    {
      Pipeline pipeline = run.pipeline();
      EXPECT_THROW(
          {
            while (pipeline.next()) continue;
          },
          Error);
    }
    profiler.expect_all_ended();
  }
}

}  // namespace
}  // namespace millrace
