// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/error.h>
#include <millrace/ranks.h>

#include <cstdlib>
#include <map>
#include <string>

namespace millrace {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Ranks ranks_in(const Variables& variables) {
  return Ranks::from_environment(
      [&variables](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        if (found == variables.end()) return std::nullopt;
        return found->second;
      });
}

void expect(const Ranks& ranks, std::uint32_t rank, std::uint32_t world, std::uint32_t local_rank,
            std::uint32_t local_world, const std::string& source) {
  EXPECT_EQ(ranks.rank, rank);
  EXPECT_EQ(ranks.world, world);
  EXPECT_EQ(ranks.local_rank, local_rank);
  EXPECT_EQ(ranks.local_world, local_world);
  EXPECT_THAT(std::string(ranks.source), HasSubstr(source));
}

const Variables torchrun{
    {"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}};
const Variables open_mpi{{"OMPI_COMM_WORLD_RANK", "3"},
                         {"OMPI_COMM_WORLD_SIZE", "6"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}};
const Variables mpich{
    {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
const Variables slurm{{"SLURM_PROCID", "7"},  {"SLURM_STEP_NUM_TASKS", "9"},
                      {"SLURM_LOCALID", "1"}, {"SLURM_STEP_TASKS_PER_NODE", "2(x3),3"},
                      {"SLURM_NODEID", "3"},  {"SLURM_NTASKS", "12"}};

TEST(Ranks, OneProcessIsAlone) {
  const Ranks ranks = ranks_in({});
  expect(ranks, 0, 1, 0, 1, "");
  EXPECT_TRUE(ranks.source.empty());
}

TEST(Ranks, AreThoseOfTheLauncher) {
  expect(ranks_in(torchrun), 5, 8, 1, 4, "torchrun (RANK, WORLD_SIZE)");
  expect(ranks_in(open_mpi), 3, 6, 0, 3, "Open MPI");
  expect(ranks_in(mpich), 1, 2, 1, 2, "MPICH");
  expect(ranks_in(slurm), 7, 9, 1, 3, "SLURM");
}

// mpirun or torchrun in a SLURM job: the job's own numbers belong to the one step that started it.
TEST(Ranks, TheInnermostLauncherCounts) {
  Variables both = slurm;
  both.insert(open_mpi.begin(), open_mpi.end());
  expect(ranks_in(both), 3, 6, 0, 3, "Open MPI");
  EXPECT_TRUE(ranks_in(both).warnings.empty()) << "SLURM started the daemons of MPI";
  both.insert(torchrun.begin(), torchrun.end());
  both["GROUP_RANK"] = "3";  // MPI started an agent of torchrun on each host
  both["GROUP_WORLD_SIZE"] = "6";
  expect(ranks_in(both), 5, 8, 1, 4, "torchrun");
}

// srun --mpi=pmi2: MPICH sets rank and world, and only SLURM sets the local ones.
TEST(Ranks, TakeSlurmsLocalOnesWhereTheLauncherTellsNone) {
  Variables pmi2 = slurm;
  pmi2["PMI_RANK"] = "7";
  pmi2["PMI_SIZE"] = "9";
  expect(ranks_in(pmi2), 7, 9, 1, 3, "MPICH");
  pmi2["PMI_SIZE"] = "8";
  expect(ranks_in(pmi2), 7, 8, 0, 1, "MPICH");
}

TEST(Ranks, ABatchScriptOfSlurmIsOneProcess) {
  expect(ranks_in({{"SLURM_PROCID", "0"},
                   {"SLURM_NTASKS", "8"},
                   {"SLURM_LOCALID", "0"},
                   {"SLURM_NODEID", "0"}}),
         0, 1, 0, 1, "");
}

TEST(Ranks, SlurmsListSaysHowManyAreOnThisHost) {
  const auto on_host = [](const std::string& list, const std::string& host) {
    Variables variables = slurm;
    variables["SLURM_STEP_TASKS_PER_NODE"] = list;
    variables["SLURM_NODEID"] = host;
    variables["SLURM_LOCALID"] = "0";
    return ranks_in(variables).local_world;
  };
  EXPECT_EQ(on_host("4", "0"), 4U);
  EXPECT_EQ(on_host("2(x3),1", "0"), 2U);
  EXPECT_EQ(on_host("2(x3),1", "2"), 2U);
  EXPECT_EQ(on_host("2(x3),1", "3"), 1U);
  EXPECT_EQ(on_host("1,5(x2),2", "2"), 5U);
  EXPECT_EQ(on_host("1,5(x2),2", "3"), 2U);
  for (const char* list : {"2(x3),1", "", "two", "2(x", "2(x3", "2(y3)", "2,", "(x3)"})
    EXPECT_THROW((void)on_host(list, "4"), Error) << list;
}

TEST(Ranks, WithoutLocalOnesAProcessIsAloneOnItsHost) {
  expect(ranks_in({{"RANK", "1"}, {"WORLD_SIZE", "2"}}), 1, 2, 0, 1, "torchrun");
  expect(ranks_in({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}}), 1, 2, 0, 1,
         "torchrun");
}

std::string complaint(const Variables& variables) {
  try {
    (void)ranks_in(variables);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "taken";
}

TEST(Ranks, NameTheVariableThatIsWrong) {
  EXPECT_THAT(complaint({{"RANK", "one"}, {"WORLD_SIZE", "2"}}), HasSubstr("RANK is \"one\""));
  EXPECT_THAT(complaint({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}), HasSubstr("RANK is \"-1\""));
  EXPECT_THAT(complaint({{"RANK", "1"}, {"WORLD_SIZE", "4294967296"}}),
              HasSubstr("WORLD_SIZE is \"4294967296\""));
  EXPECT_THAT(complaint({{"RANK", "1"}, {"WORLD_SIZE", ""}}), HasSubstr("WORLD_SIZE is \"\""));
  EXPECT_THAT(complaint({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
              HasSubstr("RANK is 2, but WORLD_SIZE is 2"));
  EXPECT_THAT(complaint({{"RANK", "0"}, {"WORLD_SIZE", "0"}}), HasSubstr("WORLD_SIZE is 0"));
  EXPECT_THAT(
      complaint(
          {{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}}),
      HasSubstr("LOCAL_RANK is 2, but LOCAL_WORLD_SIZE is 2"));
  EXPECT_THAT(complaint({{"RANK", "0"}}), HasSubstr("RANK is set, but WORLD_SIZE is not"));
  EXPECT_THAT(complaint({{"OMPI_COMM_WORLD_SIZE", "2"}}), HasSubstr("OMPI_COMM_WORLD_RANK is not"));
}

// mpirun in a shell that has RANK and WORLD_SIZE of an earlier run.
TEST(Ranks, MpiOfAnotherWorldIsRefused) {
  for (const Variables& mpi : {open_mpi, mpich}) {
    Variables stale = mpi;
    stale["RANK"] = "0";
    stale["WORLD_SIZE"] = "4";
    const std::string what = complaint(stale);
    EXPECT_THAT(what, HasSubstr("WORLD_SIZE is 4, but "));
    EXPECT_THAT(what,
                HasSubstr(mpi.contains("PMI_SIZE") ? "PMI_SIZE is 2" : "COMM_WORLD_SIZE is 6"));
    EXPECT_THAT(what, HasSubstr("unset RANK and WORLD_SIZE"));
  }
}

TEST(Ranks, SourcesThatContradictEachOtherAreAWarning) {
  Variables stale = open_mpi;
  stale["RANK"] = "0";
  stale["WORLD_SIZE"] = "6";
  const Ranks ranks = ranks_in(stale);
  expect(ranks, 0, 6, 0, 1, "torchrun");
  ASSERT_EQ(ranks.warnings.size(), 1U);
  EXPECT_THAT(ranks.warnings.front(), HasSubstr("rank 0 of 6"));
  EXPECT_THAT(ranks.warnings.front(), HasSubstr("rank 3 of 6"));

  Variables step = slurm;
  step["RANK"] = "0";
  step["WORLD_SIZE"] = "2";
  ASSERT_EQ(ranks_in(step).warnings.size(), 1U);
  EXPECT_THAT(ranks_in(step).warnings.front(), HasSubstr("SLURM"));
  step["RANK"] = "7";
  step["WORLD_SIZE"] = "9";
  EXPECT_TRUE(ranks_in(step).warnings.empty());
  step["WORLD_SIZE"] = "18";
  step["GROUP_RANK"] = "7";
  step["GROUP_WORLD_SIZE"] = "9";
  EXPECT_TRUE(ranks_in(step).warnings.empty()) << "srun started torchrun's agents";
}

TEST(Ranks, AreReadFromTheProcessEnvironment) {
  setenv("RANK", "2", 1);
  setenv("WORLD_SIZE", "3", 1);
  const Ranks ranks = Ranks::from_environment();
  unsetenv("RANK");
  unsetenv("WORLD_SIZE");
  EXPECT_EQ(ranks.rank, 2U);
  EXPECT_EQ(ranks.world, 3U);
}

}  // namespace
}  // namespace millrace
