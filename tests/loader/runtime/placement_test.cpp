// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/detail/placement.h>
#include <millrace/error.h>

#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "support/small_run.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

/// `nodes` nodes of `cores` processors each.
Topology machine_of(unsigned nodes, unsigned cores) {
  return synthetic_topology("pack:" + std::to_string(nodes) +
                            " [numa] core:" + std::to_string(cores) + " pu:1");
}

/// Lets a machine's process have `quota` processors' time.
Topology with_quota(Topology machine, double quota, unsigned cores) {
  machine.quota = quota;
  machine.usable_cpus = cores;
  return machine;
}

/// A GPU on each of `nodes`.
Topology with_gpus(Topology machine, const std::vector<int>& nodes) {
  for (const int node : nodes)
    machine.devices.push_back(
        {.address = "0000:4" + std::to_string(machine.devices.size()) + ":00.0",
         .node = node,
         .can_launch_kernels = true});
  return machine;
}

std::vector<int> cpus_of(const Topology& topology) {
  std::vector<int> cpus;
  for (const NumaNode& node : topology.nodes)
    cpus.insert(cpus.end(), node.cpus.begin(), node.cpus.end());
  return cpus;
}

TEST(Placement, HasAWorkerPerProcessor) {
  for (const unsigned nodes : {1U, 2U, 8U}) {
    const Placement placement = place_workers(machine_of(nodes, 4));
    EXPECT_EQ(placement.workers, std::vector<unsigned>(nodes, 4));
    EXPECT_EQ(placement.launch_cores, 0U);
    EXPECT_THAT(placement.reasons,
                ElementsAre(HasSubstr(std::to_string(4 * nodes) + " workers: one per processor")));
    EXPECT_THAT(placement.warnings, IsEmpty());
  }
}

TEST(Placement, FollowsUnevenNodes) {
  const Topology uneven{.nodes = {{0, {0, 1}}, {3, {2, 3, 4, 5, 6, 7}}}, .usable_cpus = 8};
  EXPECT_THAT(place_workers(uneven).workers, ElementsAre(2, 6));
  EXPECT_THAT(place_workers(uneven, {.workers = 4}).workers, ElementsAre(1, 3));
  EXPECT_THAT(place_workers(uneven, {.workers = 1}).workers, ElementsAre(0, 1));
}

TEST(Placement, GivesNothingToNodesOfMemoryAlone) {
  EXPECT_THAT(place_workers(synthetic_topology("pack:2 [numa] [numa] core:2 pu:1")).workers,
              ElementsAre(2, 2));
}

TEST(Placement, KeepsToTheQuotaAndSaysSo) {
  const Placement placement = place_workers(with_quota(machine_of(2, 32), 3.5, 4));
  EXPECT_THAT(placement.workers, ElementsAre(2, 2));
  EXPECT_THAT(placement.reasons, Contains("4 of 64 processors: the control group's quota of 3.5"));
}

TEST(Placement, SaysWhatElseRestrictsIt) {
  Topology machine = machine_of(1, 4);
  machine.machine_cpus = 64;
  machine.cpuset_cpus = 8;
  EXPECT_THAT(place_workers(machine).reasons,
              ElementsAre("8 of 64 processors: the control group's cpuset",
                          "4 of 8 processors: the affinity of the process",
                          "4 workers: one per processor"));
}

TEST(Placement, LeavesAProcessorOfEachGpusNodeFree) {
  const Placement one = place_workers(with_gpus(machine_of(2, 4), {1}));
  EXPECT_THAT(one.workers, ElementsAre(4, 3));
  EXPECT_EQ(one.launch_cores, 1U);
  EXPECT_THAT(one.reasons, ElementsAre("1 processor of node 1 is left free for the thread that "
                                       "launches kernels on GPU 0000:40:00.0",
                                       "7 workers: one per processor that is left"));
  const Placement eight = place_workers(with_gpus(machine_of(8, 4), {0, 0, 1, 1, 4, 4, 5, 5}));
  EXPECT_THAT(eight.workers, ElementsAre(2, 2, 4, 4, 2, 2, 4, 4));
  EXPECT_THAT(eight.reasons, Contains("2 processors of node 4 are left free for the threads that "
                                      "launch kernels on GPU 0000:44:00.0, "
                                      "0000:45:00.0"));
  EXPECT_THAT(eight.warnings, IsEmpty());
}

TEST(Placement, TakesTheProcessorElsewhereWhereTheGpusNodeHasNoneToSpare) {
  const Topology machine{.nodes = {{0, {0, 1, 2}}, {1, {3}}}, .usable_cpus = 4};
  EXPECT_THAT(place_workers(with_gpus(machine, {1})).workers, ElementsAre(2, 1));
  EXPECT_THAT(place_workers(with_gpus(machine, {7})).workers, ElementsAre(2, 1))
      << "a node without usable processors";
  Topology unknown = with_gpus(machine, {0});
  unknown.devices[0].node.reset();
  EXPECT_THAT(place_workers(unknown).workers, ElementsAre(2, 1));
}

TEST(Placement, LeavesNothingFreeWithFewerThanFourCoresOrNoGpuThatLaunches) {
  const Placement few = place_workers(with_gpus(machine_of(1, 3), {0}));
  EXPECT_THAT(few.workers, ElementsAre(3));
  EXPECT_THAT(few.reasons, Contains(HasSubstr("no processor is left free")));
  EXPECT_THAT(place_workers(with_quota(with_gpus(machine_of(1, 8), {0}), 3, 3)).workers,
              ElementsAre(3));
  EXPECT_THAT(place_workers(with_gpus(machine_of(1, 4), {0})).workers, ElementsAre(3));
  Topology display = with_gpus(machine_of(1, 4), {0});
  display.devices[0].can_launch_kernels = false;
  EXPECT_THAT(place_workers(display).workers, ElementsAre(4));
}

TEST(Placement, LeavesFreeWhatIsAskedFor) {
  const Topology machine = with_gpus(machine_of(2, 4), {1});
  EXPECT_THAT(place_workers(machine, {.launch_cores = 0}).workers, ElementsAre(4, 4));
  EXPECT_THAT(place_workers(machine, {.launch_cores = 3}).workers, ElementsAre(2, 3));
  EXPECT_THAT(place_workers(machine_of(1, 2), {.launch_cores = 1}).workers, ElementsAre(1));
  const Placement many = place_workers(machine_of(1, 4), {.launch_cores = 9});
  EXPECT_EQ(many.total_workers(), 1U) << "a worker remains";
  EXPECT_EQ(many.launch_cores, 3U);
  EXPECT_THAT(many.warnings, ElementsAre(HasSubstr("3 of the 9 threads")));
}

TEST(Placement, WarnsOfMoreWorkersThanProcessors) {
  EXPECT_THAT(place_workers(machine_of(2, 4), {.workers = 8}).warnings, IsEmpty());
  EXPECT_THAT(place_workers(machine_of(2, 4), {.workers = 9}).warnings,
              ElementsAre("oversubscribed: 9 workers on 8 processors"));
  EXPECT_THAT(place_workers(with_quota(machine_of(2, 4), 2, 2), {.workers = 3}).warnings,
              ElementsAre("oversubscribed: 3 workers on 2 processors"));
}

TEST(Share, RanksTakeAllProcessorsOnceEach) {
  for (const unsigned nodes : {1U, 2U, 8U})
    for (const unsigned ranks : {1U, 2U, 3U, 4U, 5U, 8U}) {
      const Topology machine = machine_of(nodes, 8);
      std::vector<int> taken;
      std::set<std::size_t> sizes;
      for (unsigned rank = 0; rank < ranks; ++rank) {
        const Topology share = share_of(machine, rank, ranks);
        const std::vector<int> cpus = cpus_of(share);
        EXPECT_EQ(share.usable_cpus, cpus.size());
        sizes.insert(cpus.size());
        taken.insert(taken.end(), cpus.begin(), cpus.end());
      }
      EXPECT_EQ(taken, cpus_of(machine)) << ranks << " ranks on " << nodes << " nodes";
      EXPECT_LE(*sizes.rbegin() - *sizes.begin(), 1U);
    }
}

TEST(Share, RanksSitOnFewNodes) {
  for (unsigned rank = 0; rank < 8; ++rank) {
    EXPECT_THAT(share_of(machine_of(8, 4), rank, 8).nodes, SizeIs(1));
    EXPECT_EQ(share_of(machine_of(8, 4), rank, 8).nodes[0].number, static_cast<int>(rank));
    EXPECT_THAT(share_of(machine_of(2, 16), rank, 8).nodes, SizeIs(1));
  }
}

TEST(Share, RanksDoNotShareAPhysicalCore) {
  // Hardware threads are often numbered like this: 0 and 4 share a core.
  const Topology machine{.nodes = {{0, {0, 1, 2, 3, 4, 5, 6, 7}, {{0, 4}, {1, 5}, {2, 6}, {3, 7}}}},
                         .usable_cpus = 8};
  const Topology share = share_of(machine, 1, 4);
  EXPECT_THAT(share.nodes[0].cpus, ElementsAre(1, 5));
  EXPECT_THAT(share.nodes[0].physical_cores, ElementsAre(ElementsAre(1, 5)));
  EXPECT_THAT(share_of(machine, 1, 2).nodes[0].cpus, ElementsAre(2, 3, 6, 7));
}

TEST(Share, RanksDivideTheQuota) {
  const Topology machine = with_quota(machine_of(2, 32), 6, 6);
  unsigned together = 0;
  for (unsigned rank = 0; rank < 4; ++rank) {
    const Placement placement = place_workers(machine, {.local_rank = rank, .local_world = 4});
    together += placement.total_workers();
    EXPECT_THAT(cpus_of(placement.topology), SizeIs(16));
    EXPECT_THAT(placement.reasons, Contains(HasSubstr("its part of the quota is")));
  }
  EXPECT_EQ(together, 6U);
  const Placement crowded =
      place_workers(with_quota(machine, 2, 2), {.local_rank = 3, .local_world = 4});
  EXPECT_EQ(crowded.total_workers(), 1U);
  EXPECT_THAT(crowded.warnings,
              ElementsAre("oversubscribed: 4 ranks of this host share 2 processors"));
}

TEST(Share, MoreRanksThanProcessorsHaveOneEachAndAWarning) {
  for (unsigned rank = 0; rank < 5; ++rank) {
    const Placement placement =
        place_workers(machine_of(2, 1), {.local_rank = rank, .local_world = 5});
    EXPECT_THAT(cpus_of(placement.topology), ElementsAre(static_cast<int>(rank % 2)));
    EXPECT_EQ(placement.total_workers(), 1U);
    EXPECT_THAT(placement.warnings,
                ElementsAre("oversubscribed: 5 ranks of this host share 2 processors"));
  }
}

TEST(Share, ARankThatItsLauncherHasBoundKeepsItsProcessors) {
  Topology machine{.nodes = {{1, {8, 9, 10, 11}}},
                   .usable_cpus = 4,
                   .machine_cpus = 16,
                   .cpuset_cpus = 16,
                   .affinity_cpus = 4};
  const Placement bound = place_workers(machine, {.local_rank = 2, .local_world = 4});
  EXPECT_THAT(cpus_of(bound.topology), ElementsAre(8, 9, 10, 11));
  EXPECT_EQ(bound.total_workers(), 4U);
  EXPECT_THAT(bound.reasons, Contains(AllOf(HasSubstr("rank 2 of 4"), HasSubstr("was bound to"),
                                            HasSubstr("8-11 of node 1"))));
  EXPECT_THAT(bound.warnings, IsEmpty());
  // All ranks share the quota.
  machine = with_quota(machine, 8, 4);
  EXPECT_EQ(place_workers(machine, {.local_rank = 2, .local_world = 4}).total_workers(), 2U);
}

TEST(Share, RanksThatWereBoundTogetherDivideWhatTheyWereBoundTo) {
  // Four ranks, each with the same half of the machine, so these processors cannot be the rank's
  // own.
  const Topology machine{.nodes = {{0, {0, 1, 2, 3, 4, 5, 6, 7}}},
                         .usable_cpus = 8,
                         .machine_cpus = 16,
                         .cpuset_cpus = 16,
                         .affinity_cpus = 8};
  EXPECT_THAT(cpus_of(share_of(machine, 3, 4)), ElementsAre(6, 7));
}

TEST(Share, RanksWithTheirParentsProcessorsDivideThem) {
  // Two ranks, started by a process that was confined to this half of the machine. So few
  // processors could be each rank's own, but are not.
  const Topology machine{.nodes = {{0, {0, 1, 2, 3, 4, 5, 6, 7}}},
                         .usable_cpus = 8,
                         .machine_cpus = 16,
                         .cpuset_cpus = 16,
                         .affinity_cpus = 8,
                         .affinity_differs_from_parent = false};
  EXPECT_THAT(cpus_of(share_of(machine, 0, 2)), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(cpus_of(share_of(machine, 1, 2)), ElementsAre(4, 5, 6, 7));
}

TEST(Share, ARankSitsOnItsGpusNode) {
  // GPUs in the order of their addresses, on nodes in another order. Four nodes have no GPU.
  const std::vector<int> nodes{3, 3, 1, 1, 7, 7, 5, 5};
  const Topology machine = with_gpus(machine_of(8, 16), nodes);
  std::set<int> taken;
  for (unsigned rank = 0; rank < 8; ++rank) {
    const Placement placement = place_workers(machine, {.local_rank = rank, .local_world = 8});
    const std::vector<int> cpus = cpus_of(placement.topology);
    EXPECT_THAT(cpus, SizeIs(16));
    taken.insert(cpus.begin(), cpus.end());
    const bool first_of_node = rank % 2 == 0;
    EXPECT_EQ(placement.topology.nodes.front().number == nodes[rank], first_of_node)
        << "rank " << rank;
    if (first_of_node) {
      EXPECT_THAT(placement.warnings, IsEmpty());
    } else {
      EXPECT_THAT(placement.warnings,
                  ElementsAre(HasSubstr("is on node " + std::to_string(nodes[rank]))));
    }
  }
  EXPECT_THAT(taken, SizeIs(128)) << "pieces overlap or are left out";
}

TEST(Share, GpusThatAreShownToARankAloneAreItsOwn) {
  Topology machine = with_gpus(machine_of(2, 16), {0, 0, 0, 0, 1, 1, 1, 1});
  for (std::size_t gpu = 2; gpu < 8; ++gpu) machine.devices[gpu].can_launch_kernels = false;
  EXPECT_EQ(place_workers(machine, {.local_rank = 3, .local_world = 4}).launch_cores, 2U);
  for (std::size_t gpu = 2; gpu < 4; ++gpu) machine.devices[gpu].can_launch_kernels = true;
  EXPECT_EQ(place_workers(machine, {.local_rank = 3, .local_world = 4}).launch_cores, 1U)
      << "four for four ranks are divided";
}

TEST(Share, EachRankLeavesAProcessorFreeForItsGpu) {
  const Topology machine = with_gpus(machine_of(2, 16), {0, 0, 0, 0, 1, 1, 1, 1});
  for (unsigned rank = 0; rank < 8; ++rank) {
    const Placement placement = place_workers(machine, {.local_rank = rank, .local_world = 8});
    EXPECT_EQ(placement.total_workers(), 3U);
    EXPECT_THAT(placement.reasons, Contains(HasSubstr("on GPU 0000:4" + std::to_string(rank))));
  }
  EXPECT_EQ(place_workers(machine, {.local_rank = 1, .local_world = 2}).launch_cores, 4U);
  EXPECT_EQ(place_workers(with_gpus(machine_of(2, 16), {0}), {.local_rank = 1, .local_world = 2})
                .launch_cores,
            1U)
      << "a GPU that two ranks share";
}

TEST(Share, RefusesARankBeyondTheWorld) {
  for (const auto& [rank, world] : {std::pair(2U, 2U), std::pair(0U, 0U)}) {
    const Error error = testing::error_of(
        [&, rank = rank, world = world] { (void)share_of(machine_of(1, 4), rank, world); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("local_rank is " + std::to_string(rank)));
  }
}

}  // namespace
}  // namespace millrace
