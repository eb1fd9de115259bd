// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>

// Threads and lifetimes: a `Ranks` is a value without references. `from_environment()` reads the
// process's environment: no other thread may change the environment at the same time.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace MILLRACE_API millrace {

/// Identity of this process in a data-parallel run. The default is a run of one process.
struct Ranks {
  /// Number of this process in the run: 0 .. world-1.
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  /// Number of this process among the run's processes on this host: 0 .. local_world-1.
  std::uint32_t local_rank = 0;
  std::uint32_t local_world = 1;
  /// Source of these numbers, for people: "torchrun (RANK, WORLD_SIZE)"; empty if they were not
  /// read from the environment. The text is a constant.
  std::string_view source{};
  /// Contradicting launchers in the environment, one sentence each. A pipeline's report repeats
  /// them.
  std::vector<std::string> warnings{};

  /// Returns the value of an environment variable; nullopt if it is not set.
  using Environment = std::function<std::optional<std::string>(const std::string&)>;

  /// Reads the numbers that a launcher set in the environment. It uses the first of these launchers
  /// whose rank and world are both set:
  ///     torchrun    RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE;
  ///     Open MPI    OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE;
  ///     MPICH       PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS (also set by Intel MPI
  ///                 and others with Hydra);
  ///     SLURM       SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID and
  ///                 SLURM_STEP_TASKS_PER_NODE at SLURM_NODEID: the variables of a job step (srun)
  /// A SLURM batch script outside of a step counts as one process. Without a launcher the result is
  /// a single process. If the launcher does not set the local numbers, they are taken from SLURM if
  /// its step has the same rank and world; else they are 0 of 1.
  ///
  /// Throws `Error` (`invalid_argument`) that names the variable and its value if the value is not
  /// a number or a rank is not below its world. Also throws if only one of rank and world is set
  /// and no other launcher sets both.
  ///
  /// Torchrun's numbers are compared with those of the other launchers. If their rank or world
  /// differs, adds a warning (`warnings`): for example `mpirun` with RANK and WORLD_SIZE left from
  /// an earlier run. Throws an `Error` if the world of Open MPI or MPICH differs from WORLD_SIZE.
  /// A launcher that started torchrun's agents (GROUP_RANK, GROUP_WORLD_SIZE) is not compared.
  /// SLURM is not compared with MPI, because SLURM may have started MPI's daemons.
  static Ranks from_environment();
  /// Does the same with the variables of `environment`.
  static Ranks from_environment(const Environment& environment);
};

}  // namespace millrace
