// SPDX-License-Identifier: Apache-2.0
//
// The nodes and processors that a process may use, and the placement of its workers.
#include <gmock/gmock.h>
#include <millrace/runtime.h>
#include <sched.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <thread>

#include "numa/describe_runtime.h"
#include "numa/restricted.h"
#include "numa/two_nodes.h"

namespace millrace {
namespace {

using testing::ControlGroup;
using testing::cpus_of_node;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSubsetOf;
using testing::OnTwoNodes;
using testing::run_self;
using testing::watch;
using testing::Whereabouts;

class NumaTopology : public OnTwoNodes {};
class NumaRuntime : public OnTwoNodes {};
class NumaRestricted : public OnTwoNodes {};

TEST_F(NumaTopology, HasBothNodes) {
  const Topology topology = read_topology();
  ASSERT_EQ(topology.nodes.size(), 2U);
  for (const int node : {0, 1}) {
    EXPECT_EQ(topology.nodes[static_cast<std::size_t>(node)].number, node);
    EXPECT_THAT(topology.nodes[static_cast<std::size_t>(node)].cpus,
                ElementsAre(2 * node, 2 * node + 1));
  }
  EXPECT_EQ(topology.usable_cpus, 4U);
}

TEST_F(NumaRuntime, RunsItemsOnTheirNodesProcessorsOnly) {
  for (const unsigned workers : {2U, 3U, 4U, 6U}) {
    SCOPED_TRACE(workers);
    const Runtime runtime({.workers = workers});
    ASSERT_EQ(runtime.pools().size(), 2U);
    for (const auto& pool : runtime.pools()) EXPECT_TRUE(pool->bound());
    const std::vector<Whereabouts> pools = watch(runtime.pools());
    for (const int node : {0, 1}) {
      const Whereabouts& pool = pools[static_cast<std::size_t>(node)];
      EXPECT_THAT(pool.bindings, ElementsAre(std::vector{2 * node, 2 * node + 1}));
      EXPECT_THAT(pool.seen, IsSubsetOf(cpus_of_node(node)));
      EXPECT_THAT(pool.seen_inside, IsSubsetOf(cpus_of_node(node)))
          << "a parallel algorithm inside an item left the node";
    }
    EXPECT_EQ(pools[0].workers.size() + pools[1].workers.size(), workers);
    EXPECT_EQ(*pools[0].workers.rbegin() + 1, *pools[1].workers.begin())
        << "numbers of the second pool follow the first one's";
  }
}

TEST_F(NumaRuntime, DealsItsWorkersEvenly) {
  const Runtime runtime;
  ASSERT_EQ(runtime.pools().size(), 2U);
  for (const auto& pool : runtime.pools()) EXPECT_EQ(pool->workers(), 2U);
  EXPECT_EQ(Runtime({.workers = 1}).pools().size(), 1U);
}

TEST_F(NumaRuntime, LeavesWorkersFreeWhenAsked) {
  const Runtime runtime({.numa = Numa::off});
  ASSERT_EQ(runtime.pools().size(), 2U);
  for (const Whereabouts& pool : watch(runtime.pools()))
    EXPECT_THAT(pool.bindings, ElementsAre(std::vector{0, 1, 2, 3}));
}

TEST_F(NumaRestricted, HasEverythingWithoutALimit) {
  EXPECT_EQ(run_self("", "--runtime"),
            "node 0: 0,1\nnode 1: 2,3\n4 cores\n2 workers on 0,1\n2 workers on 2,3\n");
}

TEST_F(NumaRestricted, SeesTheNodeThatItsAffinityLeaves) {
  EXPECT_EQ(run_self("taskset -c 2-3 ", "--runtime"), "node 1: 2,3\n2 cores\n2 workers on 2,3\n");
  EXPECT_EQ(run_self("taskset -c 1,2 ", "--runtime"),
            "node 0: 1\nnode 1: 2\n2 cores\n1 workers on 1\n1 workers on 2\n");
}

TEST_F(NumaRestricted, SeesTheNodeThatItsCpusetLeaves) {
  for (const std::string node : {"0", "1"}) {
    const std::string cpus = node == "0" ? "0,1" : "2,3";
    const ControlGroup group("node" + node, {{"cpuset.cpus", cpus}, {"cpuset.mems", node}});
    EXPECT_EQ(run_self(group.enter(), "--runtime"),
              "node " + node + ": " + cpus + "\n2 cores\n2 workers on " + cpus + "\n");
  }
}

TEST_F(NumaRestricted, HasTheProcessorsOfANodeWhoseMemoryItMayNotUse) {
  const ControlGroup group("far_memory", {{"cpuset.cpus", "0-3"}, {"cpuset.mems", "1"}});
  EXPECT_EQ(run_self(group.enter(), "--runtime"),
            "node 0: 0,1\nnode 1: 2,3\n4 cores\n2 workers on 0,1\n2 workers on 2,3\n");
}

TEST_F(NumaRestricted, HasNoMoreWorkersThanItsQuota) {
  const ControlGroup group("one_and_a_half", {{"cpu.max", "150000 100000"}});
  const std::string two_workers =
      "node 0: 0,1\nnode 1: 2,3\n2 cores\n1 workers on 0,1\n1 workers on 2,3\n";
  {
    const ControlGroup inner(group.folder(), "three", {{"cpu.max", "300000 100000"}});
    EXPECT_EQ(run_self(inner.enter(), "--runtime"), two_workers)
        << "the outer group's quota counts too";
  }
  {
    const ControlGroup inner(group.folder(), "half", {{"cpu.max", "50000 100000"}});
    EXPECT_THAT(run_self(inner.enter(), "--runtime"), HasSubstr("\n1 cores\n1 workers on "));
  }
}

}  // namespace
}  // namespace millrace
