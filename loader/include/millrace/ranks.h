// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>

// Threads and lifetimes: a `Ranks` is a value that refers to nothing. `from_environment()` reads
// the process's environment: no other thread may change that at the same time.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace MILLRACE_API millrace {

/// Which process of a data-parallel run this is; by default the only one.
struct Ranks {
  /// 0 .. world-1.
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  /// Among the processes of the run on this host: 0 .. local_world-1.
  std::uint32_t local_rank = 0;
  std::uint32_t local_world = 1;
  /// Who said so, for people: "torchrun (RANK, WORLD_SIZE)"; empty if nobody did. The text is a
  /// constant.
  std::string_view source{};
  /// Launchers in the environment that contradict it, a sentence each. A pipeline's report repeats
  /// them.
  std::vector<std::string> warnings{};

  /// Gives the value of an environment variable; nullopt if it is not set.
  using Environment = std::function<std::optional<std::string>(const std::string&)>;

  /// What the launcher says in the environment, which is the first of these whose rank and world
  /// are both set:
  ///     torchrun    RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE
  ///     Open MPI    OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE
  ///     MPICH       PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS (Intel MPI and others
  ///                 with Hydra, too)
  ///     SLURM       SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID and
  ///                 SLURM_STEP_TASKS_PER_NODE at SLURM_NODEID: those of a job step (srun). A batch
  ///                 script by itself has no step, and is one process.
  /// Without any of them there is one process alone. If the launcher does not set the local ones,
  /// they are SLURM's if its step has the same rank and world, and else 0 of 1. Throws `Error`
  /// (`invalid_argument`) that names the variable and its value if that is no number or a rank is
  /// not below its world, and if a rank is set without a world or the other way round and no other
  /// launcher sets both. Another launcher that sets another rank or world, such as `mpirun` where
  /// RANK and WORLD_SIZE are left from an earlier run, is a warning (`warnings`). It is an `Error`
  /// if Open MPI or MPICH sets another world than RANK and WORLD_SIZE, unless they started
  /// torchrun's agents (GROUP_RANK, GROUP_WORLD_SIZE). SLURM is not compared with MPI, whose
  /// daemons it may have started.
  static Ranks from_environment();
  /// The same for another environment.
  static Ranks from_environment(const Environment& environment);
};

}  // namespace millrace
