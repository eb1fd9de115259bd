// SPDX-License-Identifier: Apache-2.0
//
// Tests of failures in everything that the pipeline calls: they reach next() as an error, soon, and
// every time from then on.
#include <gmock/gmock.h>
#include <millrace/pipeline.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "loader/pipeline/image_run.h"
#include "support/fake_device.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::DeviceCall;
using testing::error_of;
using ::testing::HasSubstr;
using testing::HookDevice;
using testing::ImageRun;
using testing::patience;
using testing::SmallRun;
using testing::Stopwatch;

/// Type of the exception that the fakes throw.
enum class Thrown { error, exception, number };
constexpr std::array all_thrown{Thrown::error, Thrown::exception, Thrown::number};

[[noreturn]] void throw_it(Thrown thrown) {
  switch (thrown) {
    case Thrown::error:
      throw Error(ErrorCode::device, "the planted error");
    case Thrown::exception:
      throw std::runtime_error("the planted error");
    case Thrown::number:
      break;
  }
  throw 17;  // NOLINT: some code throws such things
}

const char* name_of(Thrown thrown) {
  return thrown == Thrown::error ? "error" : thrown == Thrown::exception ? "exception" : "int";
}
void PrintTo(Thrown thrown, std::ostream* out) { *out << name_of(thrown); }

/// Takes batches until the run's error comes, and checks that error. The pipeline's constructor may
/// throw it, too.
template <typename Run>
Error expect_error(const Run& run, HookDevice* hooked = nullptr, Thrown thrown = Thrown::error) {
  const auto stream = hooked != nullptr ? std::unique_ptr<Stream>(hooked->trainer_stream())
                                        : std::make_unique<HostStream>();
  const Stopwatch time;
  std::unique_ptr<Pipeline> pipeline;
  try {
    pipeline = std::make_unique<Pipeline>(run.pipeline());
  } catch (...) {
    return Error(ErrorCode::internal, "it could not be built");
  }
  const Error first = error_of([&] {
    while (time.elapsed() < patience)
      if (!pipeline->next(*stream, patience)) return;
  });
  EXPECT_LT(time.elapsed(), patience);
  EXPECT_NE(first.code(), ErrorCode::timeout) << "the run hung";
  if (thrown != Thrown::number) {
    EXPECT_THAT(first.what(), HasSubstr("the planted error"));
  }
  for (int again = 0; again < 2; ++again) {
    EXPECT_STREQ(error_of([&] { (void)pipeline->next(*stream); }).what(), first.what());
    EXPECT_STREQ(error_of([&] { (void)pipeline->next(); }).what(), first.what());
    EXPECT_STREQ(error_of([&] { (void)pipeline->next_in_micro_batches(*stream); }).what(),
                 first.what());
  }
  const Stopwatch ending;
  pipeline.reset();
  EXPECT_LT(ending.elapsed(), 3s);
  return first;
}

class PipelineFaults : public ::testing::TestWithParam<bool> {
 protected:
  SmallRun run{800, GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Copies, PipelineFaults, ::testing::Bool());

TEST_P(PipelineFaults, OfReading) {
  for (const Thrown thrown : all_thrown) {
    SCOPED_TRACE(name_of(thrown));
    run.dataset = std::make_shared<testing::MemoryDataset>(800);
    run.dataset->on_read = [thrown](std::uint64_t index) {
      if (index % 50 == 7) throw_it(thrown);
    };
    const Error error = expect_error(run, nullptr, thrown);
    EXPECT_EQ(error.code(), thrown == Thrown::error ? ErrorCode::device : ErrorCode::io);
    EXPECT_EQ(error.stage(), "read");
    ASSERT_TRUE(error.record().has_value());
    EXPECT_EQ(*error.record() % 50, 7U);
    EXPECT_THAT(error.what(), HasSubstr("drawer/" + std::to_string(*error.record()) + ".rec"));
  }
}

// prefetch() is a hint: the run goes on, and the report names the failed call.
TEST_P(PipelineFaults, OfPrefetchingAreWarnings) {
  for (const Thrown thrown : all_thrown) {
    SCOPED_TRACE(name_of(thrown));
    run.dataset = std::make_shared<testing::MemoryDataset>(800);
    std::atomic<int> calls{0};
    run.dataset->on_prefetch = [&calls, thrown](std::span<const std::uint64_t>) {
      ++calls;
      throw_it(thrown);
    };
    Pipeline pipeline = run.pipeline();
    EXPECT_TRUE(testing::eventually([&calls] { return calls > 0; }));
    for (int batch = 0; batch < 100; ++batch) EXPECT_TRUE(pipeline.next({.timeout = patience}));
    EXPECT_FALSE(pipeline.next());
    EXPECT_TRUE(testing::eventually([&] {
      const std::vector<std::string> warnings = pipeline.report().warnings;
      return std::ranges::any_of(warnings, [&](const std::string& warning) {
        return warning.find("memory: prefetch() threw: ") != std::string::npos &&
               (thrown == Thrown::number || warning.find("the planted error") != std::string::npos);
      });
    }));
  }
}

TEST_P(PipelineFaults, OfMaking) {
  for (const Thrown thrown : all_thrown) {
    SCOPED_TRACE(name_of(thrown));
    run.transform = std::make_shared<testing::StampTransform>();
    run.transform->on_end = [thrown](const Record& record) {
      if (record.index() % 50 == 7) throw_it(thrown);
      return Status::ok();
    };
    const Error error = expect_error(run, nullptr, thrown);
    EXPECT_EQ(error.code(), thrown == Thrown::error ? ErrorCode::device : ErrorCode::transform);
    EXPECT_EQ(error.stage(), "finish");
    ASSERT_TRUE(error.record().has_value());
    EXPECT_THAT(error.what(), HasSubstr("drawer/" + std::to_string(*error.record()) + ".rec"));
  }
}

TEST_P(PipelineFaults, OfMakingWorkers) {
  for (const Thrown thrown : all_thrown) {
    SCOPED_TRACE(name_of(thrown));
    run.transform = std::make_shared<testing::StampTransform>();
    run.transform->on_make_worker = [thrown] { throw_it(thrown); };
    expect_error(run, nullptr, thrown);
  }
}

/// Path of a batch to the device.
enum class Way { host, copies, staged };

/// A call of the device that fails, the exception that it throws, and the batches' path.
using DeviceFault = std::tuple<DeviceCall, Thrown, Way>;
class PipelineDeviceFaults : public ::testing::TestWithParam<DeviceFault> {};

TEST_P(PipelineDeviceFaults, ReachTheTrainer) {
  const auto [wrong, thrown, way] = GetParam();
  const bool set_up = wrong <= DeviceCall::make_event;
  for (const int good_calls : {0, 1, 9}) {
    if (set_up && good_calls > 1) continue;  // fewer calls are made
    if (wrong == DeviceCall::make_stream && good_calls > 0 && way != Way::staged) continue;
    SCOPED_TRACE(::testing::Message() << "after " << good_calls << " calls");
    std::atomic<int> calls{0};
    const auto device = std::make_shared<HookDevice>(
        way != Way::host, [&calls, wrong = wrong, thrown = thrown, good_calls](DeviceCall now) {
          if (now == wrong && ++calls > good_calls) throw_it(thrown);
        });
    if (way == Way::staged) {
      ImageRun run(800);
      run.device = device;
      run.flips = true;
      run.options.slots.micro_batches = 2;
      run.options.conversion = Conversion{};
      expect_error(run, device.get(), thrown);
      continue;
    }
    SmallRun run(800);
    run.device = device;
    expect_error(run, device.get(), thrown);
  }
}

std::string fault_name(const ::testing::TestParamInfo<DeviceFault>& info) {
  const auto [call, thrown, way] = info.param;
  return std::string(to_string(call)) + "_" + name_of(thrown) +
         (way == Way::copies   ? "_copies"
          : way == Way::staged ? "_staged"
                               : "");
}

INSTANTIATE_TEST_SUITE_P(
    Copying, PipelineDeviceFaults,
    ::testing::Combine(::testing::Values(DeviceCall::allocate_host, DeviceCall::allocate_device,
                                         DeviceCall::make_stream, DeviceCall::make_event,
                                         DeviceCall::copy, DeviceCall::record, DeviceCall::wait,
                                         DeviceCall::event_wait),
                       ::testing::ValuesIn(all_thrown), ::testing::Values(Way::copies)),
    fault_name);
INSTANTIATE_TEST_SUITE_P(
    Staged, PipelineDeviceFaults,
    ::testing::Combine(::testing::Values(DeviceCall::allocate_host, DeviceCall::allocate_device,
                                         DeviceCall::make_stream, DeviceCall::make_event,
                                         DeviceCall::copy, DeviceCall::copy_on_device,
                                         DeviceCall::convert, DeviceCall::record, DeviceCall::wait,
                                         DeviceCall::event_wait, DeviceCall::event_complete),
                       ::testing::ValuesIn(all_thrown), ::testing::Values(Way::staged)),
    fault_name);
INSTANTIATE_TEST_SUITE_P(
    Host, PipelineDeviceFaults,
    ::testing::Combine(::testing::Values(DeviceCall::allocate_host, DeviceCall::make_event,
                                         DeviceCall::record, DeviceCall::event_wait),
                       ::testing::ValuesIn(all_thrown), ::testing::Values(Way::host)),
    fault_name);

TEST(PipelineFaultyDevice, ATrainersStreamThatFailsAtRelease) {
  for (const bool copies : {false, true}) {
    std::atomic<bool> broken{false};
    SmallRun run(800, copies);
    const auto device = std::make_shared<HookDevice>(copies, [&broken](DeviceCall call) {
      if (broken && call == DeviceCall::record) throw Error(ErrorCode::device, "the planted error");
    });
    run.device = device;
    const auto stream = device->trainer_stream();
    Pipeline pipeline = run.pipeline();
    Batch batch = pipeline.next(*stream);
    broken = true;
    batch.reset();  // must not throw
    EXPECT_THAT(error_of([&] {
                  for (int n = 0; n < 100; ++n) (void)pipeline.next(*stream);
                }).what(),
                HasSubstr("the planted error"));
  }
}

TEST(PipelineFaultyDevice, WaitingOnTheHostForACopyThatFails) {
  SmallRun run(800, true);
  std::atomic<bool> broken{false};
  const auto device = std::make_shared<HookDevice>(true, [&broken](DeviceCall call) {
    if (broken && (call == DeviceCall::event_wait || call == DeviceCall::event_complete))
      throw Error(ErrorCode::device, "the planted error");
  });
  run.device = device;
  Pipeline pipeline = run.pipeline();
  EXPECT_TRUE(pipeline.next());
  broken = true;
  EXPECT_THAT(error_of([&] {
                for (int n = 0; n < 100; ++n) (void)pipeline.next();
              }).what(),
              HasSubstr("the planted error"));
}

// The first error is the run's error, even when another thread fails after it.
TEST(PipelineFaultyTransform, TheFirstErrorStays) {
  testing::Gate gate;
  std::atomic<bool> second_failed{false};
  SmallRun run(800);
  run.options.order = Order::sequential();
  run.workers(2);
  run.transform->on_end = [&](const Record& record) {
    if (record.index() == 1) {
      EXPECT_TRUE(testing::eventually([&gate] { return gate.arrived() == 1; }));
      throw std::runtime_error("the first error");
    }
    if (record.index() == 0) {
      EXPECT_TRUE(gate.pass());
      second_failed = true;
      throw std::runtime_error("the second error");
    }
    return Status::ok();
  };
  Pipeline pipeline = run.pipeline();
  const testing::OpensAtEnd opens(gate);
  const std::string first = error_of([&] { (void)pipeline.next(); }).what();
  EXPECT_THAT(first, HasSubstr("the first error"));
  gate.open();
  EXPECT_TRUE(testing::eventually([&] { return second_failed.load(); }));
  pipeline.stop();
  EXPECT_EQ(error_of([&] { (void)pipeline.next(); }).what(), first);
}

TEST(PipelineFaultyTransform, AnErrorReachesATrainerThatWaitsForAPart) {
  SmallRun run(800);
  run.options.order = Order::sequential();
  run.options.slots.micro_batches = 2;
  testing::Gate gate;
  run.transform->on_begin = [&gate](const Record& record) {
    if (record.index() < 4) return;
    EXPECT_TRUE(gate.pass());
    throw std::runtime_error("the planted error");
  };
  Pipeline pipeline = run.pipeline();
  const testing::OpensAtEnd opens(gate);
  HostStream stream;
  const Batch batch = pipeline.next_in_micro_batches(stream);
  std::jthread opener([&gate] {
    std::this_thread::sleep_for(30ms);
    gate.open();
  });
  const Error error = error_of([&] {
    for (const MicroBatch& part : batch.micro_batches()) (void)part;
  });
  EXPECT_THAT(error.what(), HasSubstr("the planted error"));
}

TEST(PipelineFaultyTransform, NoStagesAreRefused) {
  class WithoutStages final : public testing::FunctionTransform {
   public:
    WithoutStages()
        : FunctionTransform(SampleSpec({{"x", DType::int64, {}, false}}),
                            [](const Record&, Random&, Sample&) { return Status::ok(); }) {}
    std::vector<std::string> stages() const override { return {}; }
  };
  const SmallRun run(80);
  EXPECT_EQ(error_of([&] {
              Pipeline(run.dataset, std::make_shared<WithoutStages>(), run.device, run.options);
            }).code(),
            ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace millrace
