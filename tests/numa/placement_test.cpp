// SPDX-License-Identifier: Apache-2.0
//
// Placement of slots, and of the workers that make their samples.
#include <gmock/gmock.h>
#include <millrace/detail/numa_memory.h>
#include <millrace/host_device.h>
#include <millrace/pipeline.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "numa/page_nodes.h"
#include "numa/restricted.h"
#include "numa/two_nodes.h"
#include "support/affinity.h"
#include "support/fake_dataset.h"
#include "support/fake_transform.h"
#include "support/helping_pools.h"
#include "support/lasting_warnings.h"

namespace millrace {
namespace {

using testing::ControlGroup;
using testing::cpus_of_node;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSubsetOf;
using testing::lasting_warnings;
using testing::nowhere;
using testing::OnTwoNodes;
using testing::page_nodes;
using ::testing::Pair;
using testing::run_self;
using testing::while_all_work;

/// A host device on a given NUMA node, which records the host memory that it allocated.
class PlacedDevice final : public Device {
 public:
  explicit PlacedDevice(std::optional<int> node, bool copies = false)
      : node_(node), host_({.copies = copies}) {}

  struct Given {
    const std::byte* data;
    std::size_t bytes;
    int asked_for;
  };

  std::string name() const override { return "placed"; }
  bool copies() const override { return host_.copies(); }
  Memory allocate_host(std::size_t bytes, const NumaNode& node) override {
    Memory memory = host_.allocate_host(bytes, node);
    std::lock_guard lock(mutex_);
    given_.push_back({memory.data(), bytes, node.number});
    return memory;
  }
  Memory allocate_device(std::size_t bytes) override { return host_.allocate_device(bytes); }
  std::unique_ptr<Stream> make_stream() override { return host_.make_stream(); }
  std::unique_ptr<Event> make_event() override { return host_.make_event(); }
  std::optional<int> numa_node() const override { return node_; }

  std::vector<Given> given() const {
    std::lock_guard lock(mutex_);
    return given_;
  }

 private:
  const std::optional<int> node_;
  HostDevice host_;
  mutable std::mutex mutex_;
  std::vector<Given> given_;
};

/// A run whose samples have several pages each. It records the processor on which each was made.
class PlacedRun {
 public:
  PlacedRun(std::optional<int> node, bool copies = false)
      : device_(std::make_shared<PlacedDevice>(node, copies)) {
    options.batch_size = 8;
    options.slots.prefetch = 4;
    options.epochs = 8;
  }

  PipelineOptions options;

  /// Observations of one slot.
  struct Slot {
    int asked_for = nowhere;
    std::map<int, std::size_t> pages;
    /// Processors on which its samples were made, with the number of samples.
    std::map<int, std::size_t> cpus;
  };

  /// Runs to the end and then queries the location of the slots. `report` is the run's.
  std::vector<Slot> slots(Report& report) {
    const auto dataset = std::make_shared<testing::MemoryDataset>(64);
    const auto transform = std::make_shared<testing::FunctionTransform>(
        SampleSpec(
            {{"image", DType::uint8, {image_bytes}, false}, {"label", DType::int64, {}, false}}),
        [this](const Record&, Random&, Sample& sample) { return make(sample); });
    Pipeline pipeline(dataset, transform, device_, options);
    std::size_t batches = 0;
    while (pipeline.next()) ++batches;
    EXPECT_EQ(batches, 64U);
    report = pipeline.report();
    std::vector<Slot> result;
    for (const PlacedDevice::Given& given : device_->given()) {
      Slot slot{given.asked_for, page_nodes(given.data, given.bytes), {}};
      for (const auto& [place, cpu] : made_)
        if (place >= given.data && place < given.data + given.bytes) ++slot.cpus[cpu];
      result.push_back(slot);
    }
    return result;
  }

 private:
  static constexpr std::size_t image_bytes = std::size_t{3} * 4096;

  Status make(Sample& sample) {
    const auto image = sample["image"].as<std::uint8_t>();
    std::fill(image.begin(), image.end(), std::uint8_t{1});
    sample["label"].as<std::int64_t>()[0] = 0;
    // Long enough for the slots of all nodes to have work at the same time.
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    std::lock_guard lock(*mutex_);
    made_.emplace_back(reinterpret_cast<const std::byte*>(image.data()), sched_getcpu());
    return Status::ok();
  }

  std::shared_ptr<PlacedDevice> device_;
  std::vector<std::pair<const std::byte*, int>> made_;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
};

std::set<int> keys(const std::map<int, std::size_t>& counts) {
  std::set<int> result;
  for (const auto& [key, count] : counts) result.insert(key);
  return result;
}

/// Expects all slots to lie on one node and to be filled there.
Report expect_all_on(int node, PlacedRun run) {
  Report report;
  const std::vector<PlacedRun::Slot> slots = run.slots(report);
  EXPECT_EQ(slots.size(), 4U);
  for (const PlacedRun::Slot& slot : slots) {
    EXPECT_EQ(slot.asked_for, node);
    EXPECT_THAT(keys(slot.pages), ElementsAre(node));
    EXPECT_THAT(keys(slot.cpus), IsSubsetOf(cpus_of_node(node)));
    EXPECT_FALSE(slot.cpus.empty());
  }
  return report;
}

/// Expects slots on both nodes, each completely on one node. The number of their samples made by
/// other nodes' workers must be the report's.
void expect_on_both(PlacedRun run) {
  Report report;
  const std::vector<PlacedRun::Slot> slots = run.slots(report);
  ASSERT_EQ(slots.size(), 4U);
  std::map<int, std::size_t> slots_on;
  std::map<int, std::size_t> made_at_home;
  std::map<int, std::size_t> made_elsewhere;
  for (const PlacedRun::Slot& slot : slots) {
    EXPECT_THAT(keys(slot.pages), ElementsAre(slot.asked_for));
    ++slots_on[slot.asked_for];
    for (const auto& [cpu, made] : slot.cpus)
      (cpus_of_node(slot.asked_for).contains(cpu) ? made_at_home
                                                  : made_elsewhere)[slot.asked_for] += made;
  }
  EXPECT_THAT(slots_on, ElementsAre(Pair(0, 2U), Pair(1, 2U)));
  ASSERT_EQ(report.nodes.size(), 2U);
  for (const NodeReport& node : report.nodes) {
    SCOPED_TRACE(node.node);
    EXPECT_GT(made_at_home[node.node], 0U);
    EXPECT_EQ(made_at_home[node.node] + made_elsewhere[node.node], node.samples);
    EXPECT_EQ(made_elsewhere[node.node], node.samples_by_helpers);
    EXPECT_EQ(node.memory_on_node, std::optional<bool>(true));
  }
  EXPECT_THAT(lasting_warnings(report), IsEmpty());
}

class NumaMemoryOnNode : public OnTwoNodes {};
class Placement : public OnTwoNodes {};

TEST_F(NumaMemoryOnNode, LiesThereWhoeverWritesIt) {
  constexpr std::size_t pages = 64;
  constexpr std::size_t bytes = pages * 4096;
  const Topology topology = read_topology();
  for (const NumaNode& node : topology.nodes)
    for (const int writer : {0, 1, 2, 3}) {
      SCOPED_TRACE(::testing::Message()
                   << "node " << node.number << " written on processor " << writer);
      const Memory memory = allocate_on_node(bytes, node);
      std::thread([&] {
        testing::restrict_to({writer});
        std::memset(memory.data(), 1, bytes);
      }).join();
      EXPECT_THAT(page_nodes(memory.data(), bytes), ElementsAre(Pair(node.number, pages)));
      EXPECT_EQ(pages_elsewhere(memory, node.number), std::optional<std::size_t>(0));
      EXPECT_EQ(pages_elsewhere(memory, 1 - node.number), std::optional<std::size_t>(pages));
    }
}

TEST_F(Placement, IsTheDevicesNodeAloneByDefault) {
  for (const int node : {0, 1})
    for (const bool copies : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "device on node " << node << ", copies " << copies);
      EXPECT_THAT(lasting_warnings(expect_all_on(node, PlacedRun(node, copies))), IsEmpty());
    }
}

TEST_F(Placement, IsTheDevicesNodeForEachPipelineOfASharedRuntime) {
  const auto runtime = make_runtime();
  for (const int node : {0, 1}) {
    SCOPED_TRACE(node);
    PlacedRun run(node);
    run.options.runtime = runtime;
    EXPECT_THAT(lasting_warnings(expect_all_on(node, std::move(run))), IsEmpty());
  }
}

TEST_F(Placement, IsAllNodesForADeviceWithoutANode) { expect_on_both(PlacedRun(std::nullopt)); }

TEST_F(Placement, IsAllNodesWhereAskedFor) {
  PlacedRun run(1);
  run.options.slots.nodes = Nodes::all;
  expect_on_both(std::move(run));
}

TEST_F(Placement, LetsTheOtherNodeFillTheSlotsOfAPausedOne) {
  PlacedRun run(std::nullopt);
  run.options.runtime = make_runtime();
  while_all_work(*run.options.runtime->pools()[1],
                 [&run] { run.options.runtime->set_concurrency(1); });  // worker of node 0
  Report report;
  std::set<int> slots_on;
  for (const PlacedRun::Slot& slot : run.slots(report)) {
    EXPECT_THAT(keys(slot.pages), ElementsAre(slot.asked_for));
    EXPECT_THAT(keys(slot.cpus), IsSubsetOf(cpus_of_node(0)));
    slots_on.insert(slot.asked_for);
  }
  EXPECT_THAT(slots_on, ElementsAre(0, 1));
}

TEST_F(Placement, WorksWhereTheDevicesNodeIsHidden) {
  if (read_topology().nodes.size() == 2) {  // runs this test again on node 0 alone
    const ControlGroup group("hidden", {{"cpuset.cpus", "0-1"}, {"cpuset.mems", "0"}});
    run_self(group.enter(), "--gtest_filter=Placement.WorksWhereTheDevicesNodeIsHidden");
    return;
  }
  EXPECT_THAT(lasting_warnings(expect_all_on(0, PlacedRun(1))),
              ElementsAre(::testing::HasSubstr("The device is on NUMA node 1")));
}

}  // namespace
}  // namespace millrace
