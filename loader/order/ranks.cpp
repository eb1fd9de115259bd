// SPDX-License-Identifier: Apache-2.0
#include <millrace/error.h>
#include <millrace/ranks.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace millrace {
namespace {

/// A launcher, and the variables in which it passes rank and world.
struct Launcher {
  const char* name;
  /// Name and characteristic variables of the launcher, for messages.
  const char* source;
  const char* rank;
  const char* world;
  const char* local_rank;
  /// Variable with the number of processes on this host, or with SLURM's list of the numbers on all
  /// hosts.
  const char* local_world;
  /// Variable with this host's index in that list; null without a list.
  const char* host;
  /// Whether the launcher starts MPI runs. Their world size is reliable, so `compare` refuses
  /// another one.
  bool mpi = false;
};

// Inside a SLURM job, another launcher may start the processes of a step. The numbers of that
// launcher are then right, so SLURM is last.
constexpr std::array launchers{
    Launcher{"torchrun", "torchrun (RANK, WORLD_SIZE)", "RANK", "WORLD_SIZE", "LOCAL_RANK",
             "LOCAL_WORLD_SIZE", nullptr},
    Launcher{"Open MPI", "Open MPI (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE)",
             "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
             "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr, true},
    Launcher{"MPICH", "MPICH (PMI_RANK, PMI_SIZE)", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
             "MPI_LOCALNRANKS", nullptr, true},
    Launcher{"SLURM", "SLURM (SLURM_PROCID, SLURM_STEP_NUM_TASKS)", "SLURM_PROCID",
             "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE", "SLURM_NODEID"},
};
constexpr const Launcher& torchrun = launchers.front();
constexpr const Launcher& slurm = launchers.back();

[[noreturn]] void refuse_environment(const std::string& what) {
  throw Error(ErrorCode::invalid_argument, "environment: " + what);
}

std::optional<std::uint32_t> parse_number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::uint32_t> number_in(const Ranks::Environment& environment,
                                       const char* variable) {
  const std::optional<std::string> text = environment(variable);
  if (!text) return std::nullopt;
  const std::optional<std::uint32_t> value = parse_number(*text);
  if (!value)
    refuse_environment(std::string(variable) + " is \"" + *text +
                       "\", which is not a number from 0 up");
  return value;
}

/// Number of tasks on host `host` in SLURM's list: "2(x3),1" means three hosts with 2 and one with
/// 1. Returns nullopt for a malformed list.
std::optional<std::uint32_t> tasks_on(std::uint32_t host, std::string_view list) {
  std::uint64_t hosts = 0;
  while (!list.empty()) {
    const std::string_view one = list.substr(0, list.find(','));
    list.remove_prefix(std::min(one.size() + 1, list.size()));
    const std::size_t times = one.find("(x");
    const std::optional<std::uint32_t> tasks = parse_number(one.substr(0, times));
    std::optional<std::uint32_t> repeated = 1;
    if (times != std::string_view::npos) {
      if (!one.ends_with(')')) return std::nullopt;
      repeated = parse_number(one.substr(times + 2, one.size() - times - 3));
    }
    if (!tasks || !repeated) return std::nullopt;
    hosts += *repeated;
    if (host < hosts) return tasks;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> local_world_in(const Ranks::Environment& environment,
                                            const Launcher& launcher) {
  if (launcher.host == nullptr) return number_in(environment, launcher.local_world);
  const std::optional<std::string> list = environment(launcher.local_world);
  if (!list) return std::nullopt;
  const std::uint32_t host = number_in(environment, launcher.host).value_or(0);
  const std::optional<std::uint32_t> tasks = tasks_on(host, *list);
  if (!tasks)
    refuse_environment(std::string(launcher.local_world) + " is \"" + *list +
                       "\", which does not say how many tasks host " + std::to_string(host) +
                       " has");
  return tasks;
}

void require_below(std::uint32_t rank, const char* rank_variable, std::uint32_t world,
                   const char* world_variable) {
  if (rank < world) return;
  refuse_environment(std::string(rank_variable) + " is " + std::to_string(rank) + ", but " +
                     world_variable + " is " + std::to_string(world) + "; ranks count from 0");
}

/// Copies the local rank and the local world into `into` if the launcher sets both. Returns whether
/// it sets both.
bool take_local(const Ranks::Environment& environment, const Launcher& launcher, Ranks& into) {
  const std::optional<std::uint32_t> local_rank = number_in(environment, launcher.local_rank);
  const std::optional<std::uint32_t> local_world = local_world_in(environment, launcher);
  if (!local_rank || !local_world) return false;
  require_below(*local_rank, launcher.local_rank, *local_world, launcher.local_world);
  into.local_rank = *local_rank;
  into.local_world = *local_world;
  return true;
}

/// Whether a launcher sets the same rank and world as `found`.
bool same_in(const Ranks::Environment& environment, const Launcher& launcher, const Ranks& found) {
  return number_in(environment, launcher.rank) == found.rank &&
         number_in(environment, launcher.world) == found.world;
}

/// Returns a text such as "rank 0 of 4".
std::string place_text(std::uint32_t rank, std::uint32_t world) {
  return "rank " + std::to_string(rank) + " of " + std::to_string(world);
}

/// Whether a launcher's `rank` and `world` are those of this process's torchrun agent. In that case
/// the launcher started the agents, and the agent started this process.
bool started_agents(const Ranks::Environment& environment, std::uint32_t rank,
                    std::uint32_t world) {
  return number_in(environment, "GROUP_RANK") == rank &&
         number_in(environment, "GROUP_WORLD_SIZE") == world;
}

/// Compares torchrun's numbers, `found`, with those of other launchers, which may have started
/// torchrun. A difference adds a warning. Throws `Error` if MPI states another world size. MPI's
/// numbers are not compared with SLURM's, because SLURM may have started MPI's daemons.
void compare(const Ranks::Environment& environment, Ranks& found) {
  constexpr std::string_view unset = "; unset RANK and WORLD_SIZE if they are of another run";
  for (const Launcher& other : launchers) {
    if (!environment(other.rank) || !environment(other.world)) continue;
    const std::uint32_t rank = *number_in(environment, other.rank);
    const std::uint32_t world = *number_in(environment, other.world);
    if ((rank == found.rank && world == found.world) || started_agents(environment, rank, world))
      continue;
    if (other.mpi && world != found.world)
      refuse_environment("WORLD_SIZE is " + std::to_string(found.world) + ", but " + other.world +
                         " is " + std::to_string(world) + std::string(unset));
    found.warnings.push_back("environment: " + std::string(found.source) + " says " +
                             place_text(found.rank, found.world) + ", which is used, but " +
                             other.source + " says " + place_text(rank, world) +
                             std::string(unset));
  }
}

}  // namespace

Ranks Ranks::from_environment(const Environment& environment) {
  for (const Launcher& launcher : launchers) {
    if (!environment(launcher.rank) || !environment(launcher.world)) continue;
    Ranks found;
    found.rank = *number_in(environment, launcher.rank);
    found.world = *number_in(environment, launcher.world);
    require_below(found.rank, launcher.rank, found.world, launcher.world);
    found.source = launcher.source;
    // If srun starts the processes with another launcher's variables, only SLURM's variables have
    // the local numbers.
    if (!take_local(environment, launcher, found) && same_in(environment, slurm, found))
      take_local(environment, slurm, found);
    if (&launcher == &torchrun) compare(environment, found);
    return found;
  }
  for (const Launcher& launcher : launchers) {
    if (launcher.host != nullptr) continue;  // a SLURM batch script has a rank, but no world
    const bool rank = environment(launcher.rank).has_value();
    if (rank == environment(launcher.world).has_value()) continue;
    refuse_environment(std::string(rank ? launcher.rank : launcher.world) + " is set, but " +
                       (rank ? launcher.world : launcher.rank) + " is not; " + launcher.name +
                       " sets both");
  }
  return {};
}

Ranks Ranks::from_environment() {
  return from_environment([](const std::string& variable) -> std::optional<std::string> {
    const char* value = std::getenv(variable.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  });
}

}  // namespace millrace
