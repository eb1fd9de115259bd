// SPDX-License-Identifier: Apache-2.0
//
// Tests of the NUMA nodes that a pipeline runs on. The nodes are made up: each has one processor of
// this machine.
#include "pipeline/pipeline_nodes.h"

#include <gmock/gmock.h>
#include <millrace/detail/numa_memory.h>
#include <millrace/detail/worker_pool.h>
#include <millrace/pipeline.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "runtime/runtime_services.h"
#include "support/helping_pools.h"
#include "support/lasting_warnings.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::SmallRun;
using testing::take;
using testing::uneven_run;
using testing::while_all_work;

/// Nodes with these numbers.
Topology made_up(const std::vector<int>& numbers) {
  const std::vector<NumaNode> real = read_topology().nodes;
  std::vector<int> cpus;
  for (const NumaNode& node : real) cpus.insert(cpus.end(), node.cpus.begin(), node.cpus.end());
  Topology topology;
  topology.usable_cpus = static_cast<unsigned>(numbers.size());
  for (std::size_t node = 0; node < numbers.size(); ++node)
    topology.nodes.push_back({.number = numbers[node], .cpus = {cpus[node % cpus.size()]}});
  return topology;
}

/// A runtime with one pool per number.
std::shared_ptr<Runtime> made_up_runtime(const std::vector<int>& numbers, unsigned workers_each = 1,
                                         bool adaptive = false) {
  return make_runtime({.workers = static_cast<unsigned>(numbers.size()) * workers_each,
                       .adaptive = adaptive,
                       .topology = made_up(numbers)});
}

/// A host device on a node, which records the nodes for which it was asked for memory.
class NodeDevice final : public Device {
 public:
  explicit NodeDevice(std::optional<int> node = std::nullopt) : node_(node) {}

  std::string name() const override { return "node"; }
  bool copies() const override { return false; }
  Memory allocate_host(std::size_t bytes, const NumaNode& node) override {
    asked.push_back(node.number);
    if (unwritten) return allocate_pages(bytes);
    return host_.allocate_host(bytes, node);
  }
  Memory allocate_device(std::size_t bytes) override { return host_.allocate_device(bytes); }
  std::unique_ptr<Stream> make_stream() override { return host_.make_stream(); }
  std::unique_ptr<Event> make_event() override { return host_.make_event(); }
  std::optional<int> numa_node() const override { return node_; }

  std::vector<int> asked;
  /// Returns memory whose pages lie on no node yet.
  bool unwritten = false;

 private:
  HostDevice host_;
  std::optional<int> node_;
};

/// A run that records which workers make its samples.
struct NodesRun : SmallRun {
  NodesRun(std::uint64_t records, std::optional<int> node) : SmallRun(records) {
    device = node_device = std::make_shared<NodeDevice>(node);
    transform->on_begin = [this](const Record&) {
      std::array<char, 16> name{};
      pthread_getname_np(pthread_self(), name.data(), name.size());
      const std::lock_guard lock(mutex);
      workers_seen.insert(std::atoi(name.data() + std::string("millrace-w").size()));
    };
  }

  std::shared_ptr<NodeDevice> node_device;
  std::mutex mutex;
  std::set<int> workers_seen;
};

TEST(DealSlots, FollowsTheWorkersAndLeavesNoPoolOut) {
  const auto counts = [](std::size_t slots, const std::vector<unsigned>& workers) {
    std::vector<int> dealt(workers.size(), 0);
    for (const std::size_t pool : deal_slots(slots, workers)) ++dealt.at(pool);
    return dealt;
  };
  EXPECT_THAT(counts(4, {3}), ElementsAre(4));
  EXPECT_THAT(counts(4, {2, 2}), ElementsAre(2, 2));
  EXPECT_THAT(counts(8, {3, 1}), ElementsAre(6, 2));
  EXPECT_THAT(counts(4, {100, 1, 1}), ElementsAre(2, 1, 1));
  EXPECT_THAT(counts(2, {1, 100, 1, 50}), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(deal_slots(6, {1, 1}), ElementsAre(0, 1, 0, 1, 0, 1)) << "batches take turns";
}

TEST(PipelineNodes, BatchesAreTheSameOnAnyNumberOfThem) {
  const auto reference = [] {
    SmallRun run(53);
    run.options.epochs = 2;
    run.workers(1);
    Pipeline pipeline = run.pipeline();
    return take(pipeline);
  }();
  for (const int nodes : {1, 2, 8}) {
    std::vector<int> numbers(static_cast<std::size_t>(nodes));
    std::iota(numbers.begin(), numbers.end(), 0);
    const auto runtime = made_up_runtime(numbers);
    ASSERT_EQ(runtime->pools().size(), numbers.size());
    for (const bool copies : {false, true})
      for (const std::size_t prefetch : {1U, 3U, 9U}) {
        SCOPED_TRACE(::testing::Message()
                     << nodes << " nodes, prefetch " << prefetch << ", copies " << copies);
        SmallRun run = uneven_run(53, copies);
        run.options.epochs = 2;
        run.options.runtime = runtime;
        run.options.slots.prefetch = prefetch;
        Pipeline pipeline = run.pipeline();
        ASSERT_EQ(take(pipeline), reference);
      }
  }
}

TEST(PipelineNodes, KeepsToTheDevicesNode) {
  NodesRun run(200, 7);
  run.options.runtime = made_up_runtime({3, 7}, 2);
  Pipeline pipeline = run.pipeline();
  EXPECT_EQ(take(pipeline).size(), 25U);
  EXPECT_THAT(run.workers_seen, Each(::testing::Ge(2))) << "a worker of another node made samples";
  EXPECT_THAT(run.node_device->asked, ElementsAre(7, 7, 7, 7));
  const Report report = pipeline.report();
  EXPECT_EQ(report.workers, 2U);
  EXPECT_LE(report.active_workers, 2.0);
  EXPECT_EQ(report.cores, 1U);
  ASSERT_EQ(report.nodes.size(), 1U);
  EXPECT_EQ(report.nodes[0].node, 7);
  EXPECT_EQ(report.nodes[0].workers, 2U);
  EXPECT_EQ(report.nodes[0].slots, 4U);
  EXPECT_EQ(report.nodes[0].samples, 200U);
  EXPECT_EQ(report.nodes[0].samples_by_helpers, 0U);
}

TEST(PipelineNodes, NobodyHelpsTheDevicesNode) {
  NodesRun run(40, 1);
  run.options.runtime = made_up_runtime({0, 1});
  run.options.runtime->pools()[1]->set_concurrency(0);
  Pipeline pipeline = run.pipeline();
  HostStream stream;
  EXPECT_EQ(error_of([&] { (void)pipeline.next(stream, 50ms); }).code(), ErrorCode::timeout);
  run.options.runtime->pools()[1]->set_concurrency(1);
  EXPECT_EQ(take(pipeline).size(), 5U);
  EXPECT_THAT(run.workers_seen, ElementsAre(1));
}

TEST(PipelineNodes, TakesAllWhereTheDeviceHasNoneOfThem) {
  for (const std::optional<int> node : {std::optional<int>(), std::optional<int>(5)}) {
    NodesRun run(40, node);
    run.options.runtime = made_up_runtime({0, 1});
    Pipeline pipeline = run.pipeline();
    EXPECT_EQ(take(pipeline).size(), 5U);
    EXPECT_EQ(pipeline.report().workers, 2U);
    EXPECT_EQ(pipeline.report().nodes.size(), 2U);
    EXPECT_THAT(run.node_device->asked, ElementsAre(0, 1, 0, 1));
  }
}

TEST(PipelineNodes, TakesAllWhenAskedTo) {
  NodesRun run(40, 1);
  run.options.runtime = made_up_runtime({0, 1});
  run.options.slots.nodes = Nodes::all;
  Pipeline pipeline = run.pipeline();
  EXPECT_EQ(take(pipeline).size(), 5U);
  EXPECT_EQ(pipeline.report().nodes.size(), 2U);
  EXPECT_THAT(run.node_device->asked, ElementsAre(0, 1, 0, 1));
}

TEST(PipelineNodes, TheReportTellsWhoMadeTheSamples) {
  NodesRun run(160, std::nullopt);
  run.options.runtime = made_up_runtime({0, 1});
  WorkerPool& paused = *run.options.runtime->pools()[0];
  while_all_work(paused, [&] { paused.set_concurrency(0); });
  Pipeline pipeline = run.pipeline();
  EXPECT_EQ(take(pipeline).size(), 20U);
  EXPECT_THAT(run.workers_seen, ElementsAre(1));
  Report report = pipeline.report();
  ASSERT_EQ(report.nodes.size(), 2U);
  EXPECT_EQ(report.nodes[0].samples + report.nodes[1].samples, 160U);
  EXPECT_GE(report.nodes[0].samples, 32U) << "two slots of this node were filled at least twice";
  EXPECT_EQ(report.nodes[0].samples_by_helpers, report.nodes[0].samples);
  EXPECT_EQ(report.nodes[1].samples_by_helpers, 0U);
  pipeline.restart_report();
  report = pipeline.report();
  EXPECT_EQ(report.nodes[0].samples + report.nodes[1].samples, 0U);
  EXPECT_EQ(report.nodes[0].samples_by_helpers, 0U);
}

TEST(PipelineNodes, TheReportTellsWhereTheMemoryLies) {
  const NumaNode real = read_topology().nodes.front();
  const int none = 1000;  // this node does not exist: its memory cannot lie on it
  SmallRun run(40);
  run.options.runtime = make_runtime(
      {.workers = 2, .topology = Topology{.nodes = {real, {none, real.cpus}}, .usable_cpus = 2}});
  Pipeline pipeline = run.pipeline();
  const Report report = pipeline.report();
  ASSERT_EQ(report.nodes.size(), 2U);
  if (!report.nodes[0].memory_on_node) GTEST_SKIP() << "this system does not tell where pages lie";
  EXPECT_EQ(report.nodes[0].memory_on_node, true);
  EXPECT_EQ(report.nodes[1].memory_on_node, false);
  EXPECT_THAT(testing::lasting_warnings(report),
              ElementsAre(HasSubstr("2 pages of the host slots of NUMA node 1000")));
}

TEST(PipelineNodes, TheReportTellsWhenItIsNotKnownWhereTheMemoryLies) {
  NodesRun run(8, std::nullopt);
  run.node_device->unwritten = true;
  run.options.slots.prefetch = 1;
  run.options.runtime = made_up_runtime({0, 1});
  {
    Pipeline pipeline = run.pipeline();
    const Report report = pipeline.report();
    EXPECT_EQ(report.nodes.at(0).memory_on_node, std::nullopt);
    EXPECT_THAT(testing::lasting_warnings(report), ElementsAre(HasSubstr("not known")));
  }
  run.options.runtime = nullptr;  // otherwise its workers would be counted beside the next run's
  run.options.runtime = make_runtime({.workers = 1});
  if (run.options.runtime->topology().nodes.size() > 1) return;
  EXPECT_THAT(testing::lasting_warnings(run.pipeline().report()), ::testing::IsEmpty())
      << "there is one node only";
}

TEST(PipelineNodes, OneWithoutSlotsSaysNothingOfMemory) {
  SmallRun run(16);
  run.options.slots.prefetch = 1;
  run.options.runtime = made_up_runtime({0, 1});
  Pipeline pipeline = run.pipeline();
  EXPECT_EQ(take(pipeline).size(), 2U);
  const Report report = pipeline.report();
  ASSERT_EQ(report.nodes.size(), 2U);
  EXPECT_EQ(report.nodes[1].slots, 0U);
  EXPECT_EQ(report.nodes[1].memory_on_node, std::nullopt);
  EXPECT_EQ(report.nodes[0].samples, 16U);
  EXPECT_EQ(report.nodes[1].samples, 0U);
}

TEST(PipelineNodes, TheReportTellsWhereWorkersAreNotBound) {
  SmallRun run(8);
  Topology topology = made_up({0, 1});
  topology.nodes[1].cpus = {100'000};
  run.options.runtime = make_runtime({.workers = 2, .topology = topology});
  Pipeline pipeline = run.pipeline();
  EXPECT_EQ(take(pipeline).size(), 1U);
  const Report report = pipeline.report();
  EXPECT_FALSE(report.workers_bound);
  EXPECT_FALSE(report.nodes.at(1).workers_bound);
}

TEST(PipelineNodes, PipelinesOfDifferentNodesShareARuntime) {
  const auto runtime = made_up_runtime({0, 1}, 2);
  NodesRun of_first(200, 0);
  NodesRun of_second(200, 1);
  NodesRun of_all(200, std::nullopt);
  for (NodesRun* run : {&of_first, &of_second, &of_all}) run->options.runtime = runtime;
  Pipeline first = of_first.pipeline();
  Pipeline second = of_second.pipeline();
  Pipeline all = of_all.pipeline();
  const auto batches = take(first);
  EXPECT_EQ(take(second), batches);
  EXPECT_EQ(take(all), batches);
  EXPECT_THAT(of_first.workers_seen, Each(::testing::Le(1)));
  EXPECT_THAT(of_second.workers_seen, Each(::testing::Ge(2)));
}

TEST(PipelineNodes, AnAdaptiveRuntimeActivatesWorkersWhereTheyAreNeeded) {
  const auto runtime = made_up_runtime({0, 1}, 4, true);
  RuntimeServices& services = RuntimeServices::of(*runtime);
  WorkerPool& first = *runtime->pools()[0];
  WorkerPool& second = *runtime->pools()[1];
  const std::array<int, 2> pipelines{};
  services.set_needed_workers(&pipelines[0], 2);
  EXPECT_EQ(first.concurrency(), 1U);
  EXPECT_EQ(second.concurrency(), 1U);
  services.set_needed_workers(&pipelines[1], 4, {&second});
  EXPECT_EQ(first.concurrency(), 2U);
  EXPECT_EQ(second.concurrency(), 4U);
  services.set_needed_workers(&pipelines[1], 9, {&second});
  EXPECT_EQ(runtime->concurrency(), 6U) << "no more than there are";
  services.release(&pipelines[0]);
  EXPECT_EQ(first.concurrency(), 0U);
  EXPECT_EQ(second.concurrency(), 4U);
  services.release(&pipelines[1]);
  EXPECT_EQ(second.concurrency(), 4U) << "whoever comes next wants to start soon";
}

TEST(PipelineNodes, AnAdaptiveRuntimeThatPausesAPoolStillFillsItsSlots) {
  NodesRun run(80, std::nullopt);
  run.options.runtime = made_up_runtime({0, 1, 2}, 1, true);
  Pipeline pipeline = run.pipeline();
  // Stands for the pipeline's own need, which is at least as large.
  RuntimeServices::of(*run.options.runtime).set_needed_workers(&run, 1);
  run.options.runtime->pools()[0]->set_concurrency(0);
  run.options.runtime->pools()[1]->set_concurrency(0);
  EXPECT_EQ(take(pipeline).size(), 10U);
}

TEST(Runtime, RefusesATopologyWithoutNodesOrCores) {
  EXPECT_THAT(error_of([] { Runtime runtime({.topology = Topology{}}); }).what(),
              HasSubstr("at least one"));
  EXPECT_THAT(error_of([] {
                Runtime runtime({.topology = Topology{.nodes = {{0, {0}}}, .usable_cpus = 0}});
              }).what(),
              HasSubstr("at least one"));
}

}  // namespace
}  // namespace millrace
