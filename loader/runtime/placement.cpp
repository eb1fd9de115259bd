// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/placement.h>
#include <millrace/error.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

namespace millrace {
namespace {

/// With at least this many processors, one is left free for each GPU.
constexpr unsigned enough_cores = 4;

std::string counted(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

/// Formats a number rounded to hundredths: 1.5 -> "1.5", 4 -> "4".
std::string decimal(double value) {
  char text[32];
  return {text, std::to_chars(text, std::end(text), std::round(value * 100) / 100).ptr};
}

/// Returns the start of a piece if `size` elements are divided into `pieces` consecutive pieces.
std::size_t cut_at(std::size_t size, std::size_t piece, std::size_t pieces) {
  return size * piece / pieces;
}

/// Whether a launcher bound each rank to its own processors. These differ from the parent's, and
/// are so few that all ranks can have different ones.
bool bound_by_launcher(const Topology& machine, unsigned local_world) {
  return machine.affinity_differs_from_parent && machine.affinity_cpus < machine.cpuset_cpus &&
         std::uint64_t{machine.affinity_cpus} * local_world <= machine.cpuset_cpus;
}

/// Number of processors of all ranks on the host.
unsigned cpus_together(const Topology& machine, unsigned local_world) {
  return bound_by_launcher(machine, local_world) ? machine.cpuset_cpus
                                                 : static_cast<unsigned>(count_cpus(machine));
}

/// Number of these processors that the quota lets run at once.
unsigned cores_together(const Topology& machine, unsigned local_world) {
  const unsigned cpus = cpus_together(machine, local_world);
  if (!machine.quota) return bound_by_launcher(machine, local_world) ? cpus : machine.usable_cpus;
  return std::clamp(static_cast<unsigned>(std::ceil(*machine.quota)), 1U, cpus);
}

/// Returns the node with only those of its processors that are in `kept`.
NumaNode with_cpus(NumaNode part, const std::vector<int>& kept) {
  const auto dropped = [&](int cpu) { return std::ranges::find(kept, cpu) == kept.end(); };
  std::erase_if(part.cpus, dropped);
  for (std::vector<int>& core : part.physical_cores) std::erase_if(core, dropped);
  std::erase_if(part.physical_cores, [](const std::vector<int>& core) { return core.empty(); });
  return part;
}

/// Returns the node's processors, ordered so that those of one core follow each other.
std::vector<int> core_by_core(const NumaNode& node) {
  if (node.physical_cores.empty()) return node.cpus;
  std::vector<int> cpus;
  for (const std::vector<int>& core : node.physical_cores)
    cpus.insert(cpus.end(), core.begin(), core.end());
  return cpus;
}

/// Returns the processors from `begin` to `end`, counted over all nodes.
std::vector<NumaNode> piece_of(const std::vector<NumaNode>& nodes, std::size_t begin,
                               std::size_t end) {
  std::vector<NumaNode> pieces;
  std::size_t first = 0;
  for (const NumaNode& node : nodes) {
    const std::vector<int> cpus = core_by_core(node);
    const auto at = [&](std::size_t position) {
      return cpus.begin() +
             static_cast<std::ptrdiff_t>(std::clamp(position, first, first + cpus.size()) - first);
    };
    const std::vector<int> kept(at(begin), at(end));
    if (!kept.empty()) pieces.push_back(with_cpus(node, kept));
    first += cpus.size();
  }
  return pieces;
}

/// Returns the GPUs that a rank drives: its share of them, or one GPU that ranks share if there are
/// more ranks than GPUs.
std::vector<PciDevice> driven_gpus(const Topology& machine, unsigned local_rank,
                                   unsigned local_world) {
  std::vector<PciDevice> gpus;
  std::ranges::copy_if(machine.devices, std::back_inserter(gpus), &PciDevice::can_launch_kernels);
  const auto all = static_cast<std::size_t>(
      std::ranges::count(machine.devices, PciDevice::Kind::gpu, &PciDevice::kind));
  // If this rank sees so few GPUs that each rank can have different ones, it drives all GPUs that
  // it sees.
  if (gpus.empty() || (gpus.size() < all && gpus.size() * local_world <= all)) return gpus;
  const std::size_t begin = cut_at(gpus.size(), local_rank, local_world);
  const std::size_t end = std::max(cut_at(gpus.size(), local_rank + 1, local_world), begin + 1);
  return {gpus.begin() + static_cast<std::ptrdiff_t>(begin),
          gpus.begin() + static_cast<std::ptrdiff_t>(end)};
}

/// Returns the number of the rank's piece if the processors are divided into one piece per rank.
/// First, each rank in turn takes a piece on the node of its first GPU, if one is left. Then the
/// other ranks take the rest. Every rank of a host computes the same distribution.
std::size_t piece_of_rank(const Topology& machine, unsigned local_rank, unsigned local_world) {
  const std::size_t cpus = count_cpus(machine);
  std::vector<int> left;  // node of each piece's first processor, or `taken`
  for (std::size_t piece = 0; piece < local_world; ++piece)
    left.push_back(piece_of(machine.nodes, cut_at(cpus, piece, local_world),
                            cut_at(cpus, piece + 1, local_world))
                       .front()
                       .number);
  constexpr int taken = -1;
  constexpr std::size_t nothing = SIZE_MAX;
  std::vector<std::size_t> chosen(local_world, nothing);
  const auto choose = [&](unsigned rank, auto fits) {
    const auto piece = std::ranges::find_if(left, fits);
    if (piece == left.end()) return;
    *piece = taken;
    chosen[rank] = static_cast<std::size_t>(piece - left.begin());
  };
  for (unsigned rank = 0; rank < local_world; ++rank) {
    const std::vector<PciDevice> gpus = driven_gpus(machine, rank, local_world);
    if (!gpus.empty() && gpus.front().node)
      choose(rank, [&](int node) { return node == *gpus.front().node; });
  }
  for (unsigned rank = 0; rank < local_world; ++rank)
    if (chosen[rank] == nothing) choose(rank, [](int node) { return node != taken; });
  return chosen[local_rank];
}

/// Distributes `workers` over the nodes: each worker to the node with most processors per worker.
std::vector<unsigned> deal(unsigned workers, const std::vector<NumaNode>& nodes) {
  std::vector<unsigned> dealt(nodes.size(), 0);
  for (unsigned worker = 0; worker < workers; ++worker) {
    std::size_t best = 0;
    for (std::size_t node = 1; node < nodes.size(); ++node)
      if (nodes[node].cpus.size() * (dealt[best] + 1) > nodes[best].cpus.size() * (dealt[node] + 1))
        best = node;
    ++dealt[best];
  }
  return dealt;
}

/// Returns the node on which a processor is left free for a GPU: the GPU's own node if it has two
/// workers or more, else the node with most workers.
std::size_t giving_node(const Placement& placement, const PciDevice* gpu) {
  const auto& nodes = placement.topology.nodes;
  for (std::size_t node = 0; gpu != nullptr && node < nodes.size(); ++node)
    if (gpu->node == nodes[node].number && placement.workers[node] > 1) return node;
  return static_cast<std::size_t>(std::ranges::max_element(placement.workers) -
                                  placement.workers.begin());
}

/// Removes one worker for each thread that launches kernels, so that a processor is free for it.
void leave_free(Placement& placement, const std::vector<PciDevice>& gpus, unsigned launch_cores) {
  std::map<std::size_t, std::pair<unsigned, std::string>> left;  // number per node, and its GPUs
  for (; placement.launch_cores < launch_cores && placement.total_workers() > 1;
       ++placement.launch_cores) {
    const PciDevice* gpu =
        placement.launch_cores < gpus.size() ? &gpus[placement.launch_cores] : nullptr;
    const std::size_t node = giving_node(placement, gpu);
    --placement.workers[node];
    auto& [count, names] = left[node];
    ++count;
    if (gpu != nullptr) names += (names.empty() ? "" : ", ") + gpu->address;
  }
  for (const auto& [node, taken] : left) {
    const auto& [count, names] = taken;
    placement.reasons.push_back(
        counted(count, "processor") + " of node " +
        std::to_string(placement.topology.nodes[node].number) + (count == 1 ? " is" : " are") +
        " left free for the thread" + (count == 1 ? "" : "s") + " that launch" +
        (count == 1 ? "es" : "") + " kernels" + (names.empty() ? "" : " on GPU ") + names);
  }
  if (placement.launch_cores < launch_cores)
    placement.warnings.push_back("there are processors for only " +
                                 std::to_string(placement.launch_cores) + " of the " +
                                 counted(launch_cores, "thread") +
                                 " that launch kernels: the others share processors with workers");
}

/// Explains the limits on the process's processors.
void explain_limits(const Topology& machine, std::vector<std::string>& reasons) {
  const auto explain = [&](auto number, unsigned of, const std::string& why) {
    reasons.push_back(std::to_string(number) + " of " + counted(of, "processor") + ": " + why);
  };
  if (machine.cpuset_cpus < machine.machine_cpus)
    explain(machine.cpuset_cpus, machine.machine_cpus, "the control group's cpuset");
  if (machine.affinity_cpus < machine.cpuset_cpus)
    explain(machine.affinity_cpus, machine.cpuset_cpus, "the affinity of the process");
  const std::size_t cpus = count_cpus(machine);
  if (machine.usable_cpus < cpus)
    explain(machine.usable_cpus, static_cast<unsigned>(cpus),
            "the control group's quota" + (machine.quota ? " of " + decimal(*machine.quota) : ""));
}

std::string node_list(const Topology& topology) {
  std::string list;
  for (const NumaNode& node : topology.nodes)
    list += (list.empty() ? "" : ", ") + cpu_list(node.cpus) + " of node " +
            std::to_string(node.number);
  return list;
}

void explain_share(const Topology& machine, const RuntimeOptions& options, Placement& placement) {
  if (options.local_world == 1) return;
  const std::string rank = "rank " + std::to_string(options.local_rank) + " of " +
                           std::to_string(options.local_world) + " on this host";
  placement.reasons.push_back(
      bound_by_launcher(machine, options.local_world)
          ? rank + " keeps the processors it was bound to when it was started: " +
                node_list(placement.topology)
          : rank + " takes processors " + node_list(placement.topology));
  if (placement.topology.usable_cpus < count_cpus(placement.topology))
    placement.reasons.push_back("its part of the quota is " +
                                counted(placement.topology.usable_cpus, "processor"));
  if (const unsigned together = cores_together(machine, options.local_world);
      options.local_world > together)
    placement.warnings.push_back("oversubscribed: " + counted(options.local_world, "rank") +
                                 " of this host share " + counted(together, "processor"));
}

}  // namespace

unsigned Placement::total_workers() const {
  return std::accumulate(workers.begin(), workers.end(), 0U);
}

Topology share_of(const Topology& machine, unsigned local_rank, unsigned local_world) {
  if (local_rank >= local_world)
    throw Error(ErrorCode::invalid_argument, "local_rank is " + std::to_string(local_rank) +
                                                 " of local_world " + std::to_string(local_world) +
                                                 "; ranks count from 0 to local_world - 1");
  const std::size_t cpus = count_cpus(machine);
  if (local_world == 1 || cpus == 0) return machine;
  Topology share = machine;
  if (!bound_by_launcher(machine, local_world)) {
    if (local_world <= cpus) {
      const std::size_t piece = piece_of_rank(machine, local_rank, local_world);
      share.nodes = piece_of(machine.nodes, cut_at(cpus, piece, local_world),
                             cut_at(cpus, piece + 1, local_world));
    } else {
      const std::size_t cpu = local_rank % cpus;
      share.nodes = piece_of(machine.nodes, cpu, cpu + 1);
    }
  }
  share.usable_cpus = static_cast<unsigned>(count_cpus(share));
  if (const unsigned together = cores_together(machine, local_world);
      together < cpus_together(machine, local_world)) {
    // All ranks share one quota, even if a launcher bound them.
    const std::size_t part =
        cut_at(together, local_rank + 1, local_world) - cut_at(together, local_rank, local_world);
    share.usable_cpus = std::clamp(static_cast<unsigned>(part), 1U, share.usable_cpus);
  }
  return share;
}

Placement place_workers(const Topology& machine, const RuntimeOptions& options) {
  if (machine.nodes.empty() || machine.usable_cpus == 0)
    throw Error(ErrorCode::invalid_argument,
                "the topology has " + counted(machine.nodes.size(), "node") + " and " +
                    counted(machine.usable_cpus, "core") + "; it needs at least one of each");
  Placement placement;
  placement.topology = share_of(machine, options.local_rank, options.local_world);
  explain_limits(machine, placement.reasons);
  explain_share(machine, options, placement);
  const std::vector<PciDevice> gpus = driven_gpus(machine, options.local_rank, options.local_world);
  for (const PciDevice& gpu : gpus)
    if (gpu.node && std::ranges::count(placement.topology.nodes, *gpu.node, &NumaNode::number) == 0)
      placement.warnings.push_back(
          "GPU " + gpu.address + " is on node " + std::to_string(*gpu.node) +
          ", where this process has no processors: its batches are made on other nodes");
  const unsigned cores = placement.topology.usable_cpus;
  placement.workers = deal(options.workers > 0 ? options.workers : cores, placement.topology.nodes);
  if (options.workers > 0) {
    placement.reasons.push_back(counted(options.workers, "worker") + ", as asked for");
    if (options.workers > cores)
      placement.warnings.push_back("oversubscribed: " + counted(options.workers, "worker") +
                                   " on " + counted(cores, "processor"));
    return placement;
  }
  const auto by_default = static_cast<unsigned>(cores >= enough_cores ? gpus.size() : 0);
  if (!options.launch_cores && !gpus.empty() && by_default == 0)
    placement.reasons.push_back(
        "no processor is left free for the thread that launches kernels: this needs " +
        std::to_string(enough_cores) + " processors or more");
  leave_free(placement, gpus, options.launch_cores.value_or(by_default));
  placement.reasons.push_back(counted(placement.total_workers(), "worker") + ": one per processor" +
                              (placement.launch_cores > 0 ? " that is left" : ""));
  return placement;
}

}  // namespace millrace
