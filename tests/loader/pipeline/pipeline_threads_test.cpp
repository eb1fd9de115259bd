// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pipeline_threads.h"

#include <gmock/gmock.h>
#include <millrace/host_device.h>

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "loader/pipeline/slots/small_queues.h"
#include "support/fake_dataset.h"
#include "support/fake_transform.h"
#include "support/small_run.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::error_of;
using testing::eventually;
using testing::Gate;
using testing::now;
using testing::patience;
using testing::SmallQueues;

/// Body of a test's thread.
struct FunctionBody {
  std::function<void()> function;
  void run() const { function(); }
};

TEST(PipelineThread, IsJoinedWhenItEndsInTime) {
  std::atomic<bool> ran = false;
  PipelineThread thread(FunctionBody{[&ran] { ran = true; }});
  EXPECT_TRUE(thread.end(now() + patience));
  EXPECT_TRUE(ran);
  EXPECT_TRUE(thread.end(now())) << "again";
}

TEST(PipelineThread, LetGoItKeepsWhatItUsesUntilItEnds) {
  const auto gate = std::make_shared<Gate>();
  const std::weak_ptr<Gate> used = gate;
  {
    auto kept = std::make_shared<Gate>();
    const std::weak_ptr<Gate> watched = kept;
    PipelineThread thread(FunctionBody{[kept, gate] { EXPECT_TRUE(gate->pass()); }});
    kept.reset();
    EXPECT_FALSE(thread.end(now() + 5ms));
    EXPECT_FALSE(watched.expired());
    gate->open();
    EXPECT_TRUE(thread.end(now() + patience));
    EXPECT_TRUE(eventually([&] { return watched.expired(); }));
  }
}

/// A batch delivery that records its calls.
class RecordingDelivery final : public BatchDelivery {
 public:
  explicit RecordingDelivery(std::shared_ptr<SlotQueues> queues)
      : BatchDelivery(std::move(queues), nullptr) {}
  void deliver(HostSlot& host, std::size_t micro_batch) override {
    if (fails) throw Error(ErrorCode::device, "no more");
    passed.emplace_back(host.plan.number, micro_batch);
    if (micro_batch + 1 == queues_->micro_batches().count) queues_->leave(host);
    ++count;
  }
  bool wait_until_unused(HostSlot&, std::chrono::nanoseconds) override {
    if (leaving_fails) throw std::runtime_error("torn");
    return leaves;
  }
  bool drain(Clock::time_point) noexcept override { return drained = true; }

  bool fails = false;
  std::atomic<bool> leaves = true;
  bool leaving_fails = false;
  std::atomic<bool> drained = false;
  std::vector<std::pair<std::uint64_t, std::size_t>> passed;
  std::atomic<std::size_t> count = 0;
};

class PipelineThreads : public ::testing::Test {
 protected:
  PipelineThread plan_recycle_thread(std::shared_future<void> upload_ended) {
    const BatchFields fields(transform->spec(), std::nullopt);
    const SlotLayout layout(fields.made(), {4, 2});
    for (const auto& host : small.queues->hosts())
      host->memory = small.device->allocate_host(layout.bytes(), NumaNode{});
    const auto sampler = std::make_shared<RunSampler>(Sampler(Order{}, 20, 7));
    sample_workers = std::make_shared<SampleWorkers>(
        std::make_unique<SampleMaker>(SampleMaker::Setup{
            .dataset = dataset, .transform = transform, .layout = layout, .seed = 7}),
        fields, layout, *runtime, PipelineNodes(*runtime, *small.device, Nodes::all, 2));
    const Schedule schedule(20, {.batch_size = 4, .epochs = 1});
    return PipelineThread(PlanRecycleThread{
        small.device, small.queues, delivery, std::make_shared<Planner>(sampler, schedule),
        sample_workers, std::make_shared<Prefetcher>(dataset, sampler, schedule, 0, 0),
        std::move(upload_ended)});
  }

  const std::shared_ptr<testing::MemoryDataset> dataset =
      std::make_shared<testing::MemoryDataset>(20);
  const std::shared_ptr<testing::StampTransform> transform =
      std::make_shared<testing::StampTransform>();
  const std::shared_ptr<Runtime> runtime = make_runtime({.workers = 1});
  SmallQueues small{{.micro_batches = {4, 2}, .end = 5}};
  std::shared_ptr<RecordingDelivery> delivery = std::make_shared<RecordingDelivery>(small.queues);
  std::shared_ptr<SampleWorkers> sample_workers;
};

TEST_F(PipelineThreads, TheUploadThreadDeliversMicroBatchesInPlanOrder) {
  PipelineThread upload_thread(UploadThread{small.device, small.queues, delivery});
  HostSlot& first = small.plan();
  HostSlot& second = small.plan();
  small.make(second, 0, 4);
  small.make(first, 2, 4);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(delivery->count, 0U);
  small.make(first, 0, 2);
  EXPECT_TRUE(eventually([this] { return delivery->count == 4; }));
  small.queues->close();
  EXPECT_TRUE(upload_thread.end(now() + patience));
  using Passed = std::pair<std::uint64_t, std::size_t>;
  EXPECT_THAT(delivery->passed,
              ::testing::ElementsAre(Passed{0, 0}, Passed{0, 1}, Passed{1, 0}, Passed{1, 1}));
}

TEST_F(PipelineThreads, AnErrorInTheUploadThreadClosesTheQueues) {
  delivery->fails = true;
  PipelineThread upload_thread(UploadThread{small.device, small.queues, delivery});
  small.make(small.plan(), 0, 4);
  EXPECT_TRUE(upload_thread.end(now() + patience));
  EXPECT_STREQ(error_of([this] { small.queues->throw_if_closed(); }).what(), "no more");
}

TEST_F(PipelineThreads, TogetherTheyMoveEveryBatchToTheEnd) {
  PipelineThread upload_thread(UploadThread{small.device, small.queues, delivery});
  PipelineThread thread = plan_recycle_thread(upload_thread.ended());
  EXPECT_TRUE(eventually([this] { return delivery->count == 10; })) << "five batches";
  small.queues->close();
  EXPECT_FALSE(sample_workers->dismiss(now() + patience));
  EXPECT_TRUE(upload_thread.end(now() + patience));
  EXPECT_TRUE(thread.end(now() + patience));
  EXPECT_TRUE(delivery->drained);
}

TEST_F(PipelineThreads, ThePlanRecycleThreadKeepsASlotThatIsStillRead) {
  delivery->leaves = false;
  PipelineThread upload_thread(UploadThread{small.device, small.queues, delivery});
  PipelineThread thread = plan_recycle_thread(upload_thread.ended());
  EXPECT_TRUE(eventually([this] { return delivery->count == 4; })) << "both slots' batches";
  std::this_thread::sleep_for(30ms);
  EXPECT_EQ(delivery->count, 4U);
  delivery->leaves = true;
  EXPECT_TRUE(eventually([this] { return delivery->count == 10; }));
  small.queues->close();
  EXPECT_FALSE(sample_workers->dismiss(now() + patience));
  EXPECT_TRUE(thread.end(now() + patience));
}

TEST_F(PipelineThreads, ThePlanRecycleThreadDrainsOnlyAfterTheUploadThread) {
  std::promise<void> upload_thread;
  PipelineThread thread = plan_recycle_thread(upload_thread.get_future().share());
  small.queues->close();
  EXPECT_FALSE(thread.end(now() + 20ms));
  EXPECT_FALSE(delivery->drained);
  upload_thread.set_value();
  EXPECT_TRUE(thread.end(now() + patience));
  EXPECT_TRUE(delivery->drained);
  EXPECT_FALSE(sample_workers->dismiss(now() + patience));
}

TEST_F(PipelineThreads, AnErrorInThePlanRecycleThreadClosesTheQueues) {
  delivery->leaving_fails = true;
  PipelineThread upload_thread(UploadThread{small.device, small.queues, delivery});
  PipelineThread thread = plan_recycle_thread(upload_thread.ended());
  EXPECT_TRUE(thread.end(now() + patience));
  EXPECT_TRUE(upload_thread.end(now() + patience));
  EXPECT_STREQ(error_of([this] { small.queues->throw_if_closed(); }).what(),
               "recycle failed: device host threw: torn");
}

}  // namespace
}  // namespace millrace
