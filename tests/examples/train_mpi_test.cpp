// SPDX-License-Identifier: Apache-2.0
//
// The example trainer under mpirun: the records that its ranks read, and a run that continues with
// another number of ranks.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "support/run_program.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using testing::run_program;
using testing::RunningProgram;
using testing::TemporaryFolder;

constexpr std::uint64_t records = 100;

class TrainMpi : public ::testing::Test {
 protected:
  void SetUp() override {
    // Open MPI refuses both by default: running as root in a container, and more ranks than cores.
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
    setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", 1);  // Open MPI 5
    // Short paths, because the names of Open MPI's sockets there are limited.
    setenv("TMPDIR", "/tmp", 1);
  }

  /// Trains on `ranks` ranks and adds the records of each.
  RunningProgram::Result train(unsigned ranks, std::vector<std::string> options = {}) {
    std::vector<std::string> command{
        MILLRACE_MPIEXEC,       "-np",   std::to_string(ranks),  MILLRACE_TRAIN_MPI,
        MILLRACE_TRAIN_DATASET, "--log", folder_.path().string()};
    command.insert(command.end(), options.begin(), options.end());
    RunningProgram::Result result = run_program(command);
    for (unsigned rank = 0; rank < ranks; ++rank) read_log(rank);
    return result;
  }

  void expect_trained(const RunningProgram::Result& result, unsigned ranks) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr(std::to_string(ranks) + " ranks, Open MPI"));
    EXPECT_THAT(result.out, HasSubstr("the weights agree on all ranks"));
  }

  /// The records of each global batch, in order; the ranks' pieces one after the other.
  std::map<std::uint64_t, std::vector<std::uint64_t>> batches() const { return batches_; }

 protected:
  TemporaryFolder folder_;
  std::map<std::uint64_t, std::uint64_t> epochs_;

 private:
  void read_log(unsigned rank) {
    const auto path = folder_ / ("rank" + std::to_string(rank) + ".txt");
    std::ifstream log(path);
    for (std::string line; std::getline(log, line);) {
      std::istringstream words(line);
      std::uint64_t number = 0;
      std::uint64_t global_size = 0;
      words >> number >> epochs_[number] >> global_size;
      for (std::uint64_t record = 0; words >> record;) batches_[number].push_back(record);
    }
    std::filesystem::remove(path);
  }

  std::map<std::uint64_t, std::vector<std::uint64_t>> batches_;
};

class TrainMpiRanks : public TrainMpi, public ::testing::WithParamInterface<unsigned> {};
INSTANTIATE_TEST_SUITE_P(World, TrainMpiRanks, ::testing::Values(2U, 3U));

TEST_P(TrainMpiRanks, TheRanksRecordsOfAnEpochAreEachRecordOnce) {
  expect_trained(train(GetParam(), {"--epochs", "2"}), GetParam());
  std::map<std::uint64_t, std::vector<std::uint64_t>> epochs;
  for (const auto& [number, read] : batches())
    epochs[epochs_[number]].insert(epochs[epochs_[number]].end(), read.begin(), read.end());
  ASSERT_EQ(epochs.size(), 2U);
  for (auto& [epoch, read] : epochs) {
    std::sort(read.begin(), read.end());
    ASSERT_EQ(read.size(), records) << "epoch " << epoch;
    for (std::uint64_t record = 0; record < records; ++record)
      ASSERT_EQ(read[record], record) << "epoch " << epoch;
  }
}

TEST_F(TrainMpi, ARunOnTwoRanksGoesOnOnThreeAsIfNothingHadBeen) {
  const std::string checkpoint = (folder_ / "checkpoint").string();
  expect_trained(train(2, {"--checkpoint", checkpoint, "--batches", "3"}), 2);
  ASSERT_EQ(batches().size(), 3U);
  const auto continued = train(3, {"--checkpoint", checkpoint});
  expect_trained(continued, 3);
  EXPECT_THAT(continued.out, HasSubstr("3 batches"));
  const auto interrupted = batches();
  ASSERT_EQ(interrupted.size(), 6U);

  expect_trained(train(1),
                 1);  // its batches come after those of the others, under the same numbers
  const auto all = batches();
  for (const auto& [number, twice] : all) {
    const auto& once = interrupted.at(number);
    const std::vector<std::uint64_t> uninterrupted(
        twice.begin() + static_cast<std::ptrdiff_t>(once.size()), twice.end());
    EXPECT_EQ(uninterrupted, once) << "batch " << number;
  }
}

TEST_F(TrainMpi, TheLossFalls) {
  const auto result = train(2, {"--epochs", "8"});
  expect_trained(result, 2);
  const auto loss = [&](const std::string& epoch) {
    const std::string before = "epoch " + epoch + ": loss ";
    const std::size_t at = result.out.find(before);
    EXPECT_NE(at, std::string::npos) << result.out;
    return std::stod(result.out.substr(at + before.size()));
  };
  EXPECT_LT(loss("7"), loss("0")) << result.out;
}

TEST_F(TrainMpi, OneRanksErrorEndsAll) {
  const auto result = train(2, {"--epochs"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("train_mpi: --epochs needs a value"));
}

}  // namespace
}  // namespace millrace
