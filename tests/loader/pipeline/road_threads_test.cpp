// SPDX-License-Identifier: Apache-2.0
#include "pipeline/road_threads.h"

#include <gmock/gmock.h>
#include <millrace/host_device.h>

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "loader/pipeline/road/small_road.h"
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
using testing::SmallRoad;

/// Body of a test's thread.
struct FunctionBody {
  std::function<void()> function;
  void run() const { function(); }
};

TEST(RoadThread, IsJoinedWhenItEndsInTime) {
  std::atomic<bool> ran = false;
  RoadThread thread(FunctionBody{[&ran] { ran = true; }});
  EXPECT_TRUE(thread.end(now() + patience));
  EXPECT_TRUE(ran);
  EXPECT_TRUE(thread.end(now())) << "again";
}

TEST(RoadThread, LetGoItKeepsWhatItUsesUntilItEnds) {
  const auto gate = std::make_shared<Gate>();
  const std::weak_ptr<Gate> used = gate;
  {
    auto kept = std::make_shared<Gate>();
    const std::weak_ptr<Gate> watched = kept;
    RoadThread thread(FunctionBody{[kept, gate] { EXPECT_TRUE(gate->pass()); }});
    kept.reset();
    EXPECT_FALSE(thread.end(now() + 5ms));
    EXPECT_FALSE(watched.expired());
    gate->open();
    EXPECT_TRUE(thread.end(now() + patience));
    EXPECT_TRUE(eventually([&] { return watched.expired(); }));
  }
}

/// A batch delivery that records its calls.
class NotingOutlet final : public Outlet {
 public:
  explicit NotingOutlet(std::shared_ptr<Road> road) : Outlet(std::move(road), nullptr) {}
  void pass_on(HostSlot& host, std::size_t micro_batch) override {
    if (fails) throw Error(ErrorCode::device, "no more");
    passed.emplace_back(host.plan.number, micro_batch);
    if (micro_batch + 1 == road_->micro_batches().count) road_->leave(host);
    ++count;
  }
  bool wait_until_left(HostSlot&, std::chrono::nanoseconds) override {
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

class RoadThreads : public ::testing::Test {
 protected:
  RoadThread reaper(std::shared_future<void> feeder_ended) {
    const BatchFields fields(transform->spec(), std::nullopt);
    const SlotLayout layout(fields.made(), {4, 2});
    for (const auto& host : small.road->hosts())
      host->memory = small.device->allocate_host(layout.bytes(), NumaNode{});
    const Sampler sampler(Order{}, 20, 7);
    crew = std::make_shared<Crew>(
        std::make_unique<SampleMaker>(dataset, transform, layout, sampler, 7, BadRecords::fail, 1,
                                      nullptr, 0, nullptr),
        fields, layout, *runtime, PipelineNodes(*runtime, *small.device, Nodes::all, 2));
    const Schedule schedule(20, {.batch_size = 4, .epochs = 1});
    return RoadThread(Reaper{
        small.device, small.road, outlet, std::make_shared<Planner>(sampler, schedule), crew,
        std::make_shared<Prefetcher>(dataset, sampler, schedule, 0, 0), std::move(feeder_ended)});
  }

  const std::shared_ptr<testing::MemoryDataset> dataset =
      std::make_shared<testing::MemoryDataset>(20);
  const std::shared_ptr<testing::StampTransform> transform =
      std::make_shared<testing::StampTransform>();
  const std::shared_ptr<Runtime> runtime = make_runtime({.workers = 1});
  SmallRoad small{{.micro_batches = {4, 2}, .end = 5}};
  std::shared_ptr<NotingOutlet> outlet = std::make_shared<NotingOutlet>(small.road);
  std::shared_ptr<Crew> crew;
};

TEST_F(RoadThreads, TheFeederPassesMicroBatchesOnInPlanOrder) {
  RoadThread feeder(Feeder{small.device, small.road, outlet});
  HostSlot& first = small.plan();
  HostSlot& second = small.plan();
  small.make(second, 0, 4);
  small.make(first, 2, 4);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(outlet->count, 0U);
  small.make(first, 0, 2);
  EXPECT_TRUE(eventually([this] { return outlet->count == 4; }));
  small.road->close();
  EXPECT_TRUE(feeder.end(now() + patience));
  using Passed = std::pair<std::uint64_t, std::size_t>;
  EXPECT_THAT(outlet->passed,
              ::testing::ElementsAre(Passed{0, 0}, Passed{0, 1}, Passed{1, 0}, Passed{1, 1}));
}

TEST_F(RoadThreads, AnErrorInTheFeederClosesTheRoad) {
  outlet->fails = true;
  RoadThread feeder(Feeder{small.device, small.road, outlet});
  small.make(small.plan(), 0, 4);
  EXPECT_TRUE(feeder.end(now() + patience));
  EXPECT_STREQ(error_of([this] { small.road->throw_if_closed(); }).what(), "no more");
}

TEST_F(RoadThreads, TogetherTheyMoveEveryBatchToTheEnd) {
  RoadThread feeder(Feeder{small.device, small.road, outlet});
  RoadThread thread = reaper(feeder.ended());
  EXPECT_TRUE(eventually([this] { return outlet->count == 10; })) << "five batches";
  small.road->close();
  EXPECT_FALSE(crew->dismiss(now() + patience));
  EXPECT_TRUE(feeder.end(now() + patience));
  EXPECT_TRUE(thread.end(now() + patience));
  EXPECT_TRUE(outlet->drained);
}

TEST_F(RoadThreads, TheReaperKeepsASlotThatIsStillRead) {
  outlet->leaves = false;
  RoadThread feeder(Feeder{small.device, small.road, outlet});
  RoadThread thread = reaper(feeder.ended());
  EXPECT_TRUE(eventually([this] { return outlet->count == 4; })) << "both slots' batches";
  std::this_thread::sleep_for(30ms);
  EXPECT_EQ(outlet->count, 4U);
  outlet->leaves = true;
  EXPECT_TRUE(eventually([this] { return outlet->count == 10; }));
  small.road->close();
  EXPECT_FALSE(crew->dismiss(now() + patience));
  EXPECT_TRUE(thread.end(now() + patience));
}

TEST_F(RoadThreads, TheReaperDrainsOnlyBehindTheFeedersEnd) {
  std::promise<void> feeder;
  RoadThread thread = reaper(feeder.get_future().share());
  small.road->close();
  EXPECT_FALSE(thread.end(now() + 20ms));
  EXPECT_FALSE(outlet->drained);
  feeder.set_value();
  EXPECT_TRUE(thread.end(now() + patience));
  EXPECT_TRUE(outlet->drained);
  EXPECT_FALSE(crew->dismiss(now() + patience));
}

TEST_F(RoadThreads, AnErrorInTheReaperClosesTheRoad) {
  outlet->leaving_fails = true;
  RoadThread feeder(Feeder{small.device, small.road, outlet});
  RoadThread thread = reaper(feeder.ended());
  EXPECT_TRUE(thread.end(now() + patience));
  EXPECT_TRUE(feeder.end(now() + patience));
  EXPECT_STREQ(error_of([this] { small.road->throw_if_closed(); }).what(),
               "recycle failed: device host threw: torn");
}

}  // namespace
}  // namespace millrace
