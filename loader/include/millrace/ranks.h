// SPDX-License-Identifier: Apache-2.0
// Which process of a data-parallel run this one is: a trainer reads it from its launcher.
//
// Threads: the functions may be called from any thread while none changes the environment.
// Lifetimes: everything here is plain data; `source` is text of static storage.
#pragma once

#include <millrace/detail/export.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace MILLRACE_API millrace {

/// Which process of a data-parallel run this is. By itself: the only one.
struct Ranks {
  /// 0 .. world-1.
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  /// Among the processes of the run on this host: 0 .. local_world-1.
  std::uint32_t local_rank = 0;
  std::uint32_t local_world = 1;
  /// Who said so, for people: "torchrun (RANK, WORLD_SIZE)"; empty where nobody did. Of static
  /// storage.
  std::string_view source{};

  /// The value of an environment variable; none where it is not set.
  using Environment = std::function<std::optional<std::string>(const std::string&)>;

  /// As the launcher tells in the environment. The first of these whose rank and world are both
  /// set:
  ///     torchrun    RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE
  ///     Open MPI    OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE
  ///     MPICH       PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS (Intel MPI and others
  ///                 with Hydra, too)
  ///     SLURM       SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID and
  ///                 SLURM_STEP_TASKS_PER_NODE at SLURM_NODEID: those of a job step (srun). A batch
  ///                 script by itself has no step, and is one process.
  /// None of them: one process alone. Where the launcher does not tell the local ones they are
  /// SLURM's, if its step has the same rank and world, else 0 of 1. Throws `Error`
  /// (`invalid_argument`) that names the variable and its value: one that is no number, a rank that
  /// is not below its world, or a rank without a world or the other way round, where nothing else
  /// tells.
  static Ranks from_environment();
  /// The same, of another environment.
  static Ranks from_environment(const Environment& environment);
};

}  // namespace millrace
