// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sample_workers.h"

#include <gmock/gmock.h>
#include <millrace/device_stage.h>
#include <millrace/host_device.h>

#include <array>
#include <atomic>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "loader/pipeline/image_run.h"
#include "loader/pipeline/slots/small_queues.h"
#include "support/fake_dataset.h"
#include "support/fake_device.h"
#include "support/fake_job.h"
#include "support/fake_transform.h"
#include "support/small_run.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::eventually;
using testing::Gate;
using ::testing::HasSubstr;
using testing::now;
using testing::SmallQueues;

/// Two workers, and slot queues with batches of four samples in two micro-batches.
class SampleWorkersTest : public ::testing::Test {
 protected:
  SampleWorkersTest() {
    const BatchFields fields(transform->spec(), std::nullopt);
    const SlotLayout layout(fields.made(), {4, 2});
    for (const auto& host : small.queues->hosts())
      host->memory = small.device->allocate_host(layout.bytes(), NumaNode{});
    sample_workers = std::make_shared<SampleWorkers>(
        std::make_unique<SampleMaker>(SampleMaker::Setup{
            .dataset = dataset, .transform = transform, .layout = layout, .seed = 7, .workers = 2}),
        fields, layout, *runtime, PipelineNodes(*runtime, *small.device, Nodes::all, 2));
  }
  ~SampleWorkersTest() override { (void)sample_workers->dismiss(now() + testing::patience); }

  HostSlot& submit() {
    HostSlot& host = small.plan();
    for (std::size_t sample = 0; sample < 4; ++sample) host.records.indices[sample] = 40 + sample;
    sample_workers->submit(small.queues, host);
    return host;
  }

  const std::shared_ptr<testing::MemoryDataset> dataset =
      std::make_shared<testing::MemoryDataset>(100);
  std::shared_ptr<testing::StampTransform> transform = std::make_shared<testing::StampTransform>();
  const std::shared_ptr<Runtime> runtime = make_runtime({.workers = 2});
  SmallQueues small;
  std::shared_ptr<SampleWorkers> sample_workers;
};

TEST_F(SampleWorkersTest, MakesThePlannedSamplesAndReportsThem) {
  HostSlot& host = submit();
  const auto until = now() + testing::patience;
  for (std::size_t number = 0; number < 2; ++number) {
    const auto made = small.queues->next_made(now(), until);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->micro_batch, number);
  }
  const SampleSpec& spec = transform->spec();
  const SlotLayout layout(BatchFields(spec, std::nullopt).made(), {4, 2});
  for (std::size_t sample = 0; sample < 4; ++sample) {
    std::int64_t label = 0;
    std::memcpy(&label, layout.sample(host.memory.data(), spec.index_of("label"), sample).data,
                sizeof label);
    EXPECT_EQ(label, testing::MemoryDataset::label_of(40 + sample));
  }
  EXPECT_EQ(sample_workers->figures().work.samples, 4U);
}

TEST_F(SampleWorkersTest, AnErrorOfASampleClosesTheQueues) {
  transform->on_begin = [](const Record&) { throw std::runtime_error("broken"); };
  (void)submit();
  EXPECT_TRUE(eventually([this] { return small.queues->closed(); }));
  EXPECT_THROW(small.queues->throw_if_closed(), Error);
}

TEST_F(SampleWorkersTest, TakesNoJobOnceDismissed) {
  EXPECT_EQ(sample_workers->concurrency(), 2U);
  EXPECT_FALSE(sample_workers->dismiss(now() + testing::patience));
  EXPECT_EQ(sample_workers->concurrency(), 0U);
  (void)submit();
  std::atomic<bool> ran = false;
  runtime->pools().front()->submit(this, testing::job(1, [&ran](auto, auto) { ran = true; }));
  EXPECT_TRUE(eventually([&ran] { return ran.load(); })) << "a job that was given after it";
  EXPECT_EQ(sample_workers->figures().work.samples, 0U);
}

TEST_F(SampleWorkersTest, NamesWhatIsStuckAndKeepsWhatThatUses) {
  Gate gate;
  transform->on_begin = [&gate](const Record& record) {
    if (record.index() == 42) {
      EXPECT_TRUE(gate.pass());
    }
  };
  (void)submit();
  ASSERT_TRUE(eventually([&gate] { return gate.arrived() == 1; }));
  std::optional<Stuck> stuck;  // the other worker may be slow with its own record
  EXPECT_TRUE(eventually([&] {
    const testing::Stopwatch time;
    stuck = sample_workers->dismiss(now() + 50ms);
    EXPECT_LT(time.elapsed(), 5s);
    return !stuck || stuck->what.find("record 42 ") != std::string::npos;
  }));
  ASSERT_TRUE(stuck);
  EXPECT_EQ(stuck->stage, "stamp");
  EXPECT_GT(sample_workers.use_count(), 1) << "the sample that hangs needs it";
  gate.open();
  EXPECT_TRUE(eventually([this] { return sample_workers.use_count() == 1; }));
}

TEST_F(SampleWorkersTest, SharesWorkWithIdleWorkers) {
  std::atomic<int> arrived = 0;
  sample_workers->share(3, [&](std::size_t) {
    ++arrived;
    EXPECT_TRUE(eventually([&] { return arrived == 3; })) << "two workers and this thread at once";
  });
  EXPECT_EQ(arrived, 3);
}

TEST_F(SampleWorkersTest, SharesNothingOfNothing) {
  sample_workers->share(0, [](std::size_t) { ADD_FAILURE() << "an item of none"; });
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(100ms);
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 20) << "workers take items that are none";
}

TEST_F(SampleWorkersTest, EndsWhatItSharesWithoutAWorker) {
  std::array<std::atomic<int>, 50> times{};
  const auto share = [&] {
    sample_workers->share(times.size(), [&](std::size_t item) { ++times[item]; });
  };
  runtime->set_concurrency(0);
  share();
  Gate gate;
  transform->on_begin = [&gate](const Record&) { EXPECT_TRUE(gate.pass()); };
  runtime->set_concurrency(2);
  (void)submit();
  ASSERT_TRUE(eventually([&gate] { return gate.arrived() == 2; }));
  share();
  EXPECT_TRUE(sample_workers->dismiss(now() + 10ms));
  share();
  gate.open();
  EXPECT_TRUE(eventually([this] { return sample_workers.use_count() == 1; }));
  for (const auto& time : times) EXPECT_EQ(time, 3) << "who comes late finds none left";
}

/// Records how a worker that two pipelines share alternates between samples and items.
TEST(SampleWorkersOfTinySamples, TakesSeveralAtATime) {
  const auto runtime = make_runtime({.workers = 1});
  std::atomic<int> since_item = 0;
  std::atomic<int> max_between = 0;
  const auto transform = std::make_shared<testing::FunctionTransform>(
      SampleSpec({{"byte", DType::uint8, {1}}}), [&](const Record&, Random&, Sample&) {
        max_between = std::max(max_between.load(), ++since_item);
        return Status::ok();
      });
  Pipeline pipeline(std::make_shared<testing::MemoryDataset>(10000), transform,
                    std::make_shared<HostDevice>(), {.batch_size = 256, .runtime = runtime});
  const int owner = 0;
  runtime->pools().front()->submit(
      &owner, testing::job(std::size_t{1} << 40, [&](auto, auto) { since_item = 0; }));
  for (int batch = 0; batch < 20; ++batch) (void)pipeline.next();
  EXPECT_GE(max_between, 2) << "a worker went to its pool for every sample";
  EXPECT_TRUE(runtime->pools().front()->cancel(&owner, testing::patience));
}

/// A stage that never runs, of a field whose inputs are packed.
class PackedStage final : public DeviceStage {
 public:
  const char* name() const override { return "packed"; }
  std::size_t scratch_bytes(std::size_t) const override { return 0; }
  bool packed() const override { return true; }
  void launch(Stream&, const Samples&) const override {}
};

/// Gives out one task.
class OneTask final : public SampleMaker::Tasks {
 public:
  explicit OneTask(const SampleMaker::Task& task) : task_(task) {}
  std::optional<SampleMaker::Task> next() override { return std::exchange(task_, std::nullopt); }
  void made(const SampleMaker::Task&, const SampleMaker::SampleResult&) override {}

 private:
  std::optional<SampleMaker::Task> task_;
};

// Workers take as many samples at a time as fit into a moment.
TEST(SampleMaker, TheTimeOfSamplesMadeAgainIsNotThatOfWorkers) {
  const auto transform = std::make_shared<testing::FunctionTransform>(
      SampleSpec({{.name = "image",
                   .dtype = DType::uint8,
                   .shape = {4, 4, 3},
                   .device_stages = {std::make_shared<PackedStage>()}}}),
      [](const Record&, Random&, Sample& sample) {
        std::memset(sample[0].data, 0, sample[0].bytes());
        return Status::ok();
      });
  const SlotLayout layout(transform->spec(), {4, 1});
  SampleMaker maker({.dataset = std::make_shared<testing::MemoryDataset>(10),
                     .transform = transform,
                     .layout = layout,
                     .workers = 2});
  std::vector<std::byte> slot(layout.bytes());
  const Sampler sampler(Order::sequential(), 10, 0);
  PackedRoom room;
  SampleMaker::Task task{slot.data(), 0, 0, 0, 0, &sampler, &room};
  for (const unsigned worker : {0U, 1U}) {
    OneTask tasks(task);
    maker.make(tasks, worker);
  }
  const auto busy = maker.busy_of(0, 2);
  EXPECT_GT(busy, 0ns);
  task.again = true;
  OneTask again(task);
  EXPECT_NE(maker.make_again(again), nullptr);
  EXPECT_EQ(maker.busy_of(0, 2), busy);
  EXPECT_EQ(maker.samples_by(0, 2), 2U);
  EXPECT_GT(maker.busy_of(maker.again_worker(), 1), 0ns);
}

/// A run whose workers take two samples at a time and make the later one first.
testing::SmallRun in_turn(std::uint64_t records) {
  testing::SmallRun run(records);
  run.transform->in_turn = true;
  run.workers(1);
  return run;
}

TEST(SampleWorkersInTurn, MakesTheSameBatches) {
  const testing::SmallRun turns = in_turn(100);
  testing::SmallRun alone(100);
  Pipeline one = turns.pipeline();
  Pipeline other = alone.pipeline();
  EXPECT_EQ(testing::take(one), testing::take(other));
  EXPECT_GE(turns.transform->pairs(), 48U) << "twelve batches of 8 samples and one of 4";
  EXPECT_EQ(alone.transform->pairs(), 0U);
}

TEST(SampleWorkersInTurn, TakesOneOfAMicroBatchOfOne) {
  testing::SmallRun run = in_turn(32);
  run.options.slots.micro_batches = 8;
  Pipeline pipeline = run.pipeline();
  EXPECT_EQ(testing::take(pipeline).size(), 4U);
  EXPECT_EQ(run.transform->pairs(), 0U);
}

TEST(SampleWorkersInTurn, CountsNoTimeTwice) {
  const testing::SmallRun run = in_turn(64);
  run.transform->on_begin = [](const Record&) { std::this_thread::sleep_for(1ms); };
  const testing::Stopwatch time;
  Pipeline pipeline = run.pipeline();
  (void)testing::take(pipeline);
  double busy = 0;
  for (const auto& stage : pipeline.report().stages) busy += stage.busy_seconds;
  EXPECT_GE(busy, 0.064);
  EXPECT_LE(busy, std::chrono::duration<double>(time.elapsed()).count()) << "of one worker";
}

TEST(SampleWorkersInTurn, NamesTheSampleThatThrows) {
  for (const std::uint64_t broken : {17U, 18U}) {
    const testing::SmallRun run = in_turn(40);
    run.transform->on_begin = [broken](const Record& record) {
      if (record.index() == broken) throw std::runtime_error("broken");
    };
    Pipeline pipeline = run.pipeline();
    const Error error = testing::error_of([&] { (void)testing::take(pipeline); });
    EXPECT_EQ(error.record(), broken);
    EXPECT_EQ(error.stage(), "stamp");
  }
}

TEST(SampleWorkersInTurn, NamesTheSampleThatIsStuckNotTheOneThatWaits) {
  for (const std::uint64_t hangs : {16U, 17U, 18U, 19U}) {
    testing::SmallRun run = in_turn(40);
    run.options.order = Order::sequential();
    Gate gate;
    run.transform->on_begin = [&](const Record& record) {
      if (record.index() == hangs) {
        EXPECT_TRUE(gate.pass());
      }
    };
    std::string stuck;
    run.options.debug.on_stuck = [&](std::string_view what) {
      stuck = what;
      gate.open();
    };
    run.options.debug.stop_timeout = 50ms;
    {
      Pipeline pipeline = run.pipeline();
      ASSERT_TRUE(eventually([&] { return gate.arrived() == 1; }));
    }
    EXPECT_THAT(stuck, HasSubstr("stamp of record " + std::to_string(hangs)));
    EXPECT_TRUE(eventually([&] { return run.transform.use_count() == 1; })) << "it uses the hook";
  }
}

TEST(SampleWorkersShare, ThePipelinesConversions) {
  testing::ImageRun run(16);
  const auto device = std::make_shared<testing::HookDevice>(true);
  run.device = device;
  run.options.conversion = Conversion{};
  std::atomic<int> shared = 0;
  device->hooks().on_launch = [&](const DeviceWork& work) {
    if (work.as<ConversionWork>()->workers != nullptr) ++shared;
  };
  Pipeline pipeline = run.pipeline();
  while (pipeline.next()) continue;
  EXPECT_EQ(shared, 2);
}

}  // namespace
}  // namespace millrace
