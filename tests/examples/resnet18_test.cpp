// SPDX-License-Identifier: Apache-2.0
//
// The LibTorch trainer on made-up pictures.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/run_program.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::run_program;
using testing::RunningProgram;
using ::testing::StartsWith;
using testing::TemporaryFolder;

RunningProgram::Result resnet18(std::vector<std::string> options) {
  options.insert(options.begin(), {MILLRACE_RESNET18, MILLRACE_TRAIN_DATASET});
  return run_program(options);
}

/// 100 pictures in batches of 20: five batches an epoch.
std::vector<std::string> small(std::vector<std::string> more = {}) {
  std::vector<std::string> all = {"--size", "32",    "--batch-size", "20",
                                  "--rate", "0.001", "--epochs",     "4"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string epoch_line(const std::string& out, int epoch) {
  const std::size_t begin = out.find("epoch " + std::to_string(epoch) + ":");
  return begin == std::string::npos ? "" : out.substr(begin, out.find('\n', begin) - begin);
}

TEST(ResNet18, TheLossFallsAndARunGoesOnFromACheckpoint) {
  const TemporaryFolder folder;
  const std::string checkpoint = folder / "checkpoint";
  const auto whole = resnet18(small({"--evaluate", MILLRACE_TRAIN_DATASET}));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const auto loss = [](const std::string& line) {
    return std::stod(line.substr(line.find("loss") + 5));
  };
  ASSERT_NE(epoch_line(whole.out, 2), "") << whole.out;
  EXPECT_LT(loss(epoch_line(whole.out, 2)), 0.8 * loss(epoch_line(whole.out, 0)));
  EXPECT_THAT(epoch_line(whole.out, 2), HasSubstr(", evaluation "));

  const std::vector<std::string> with_checkpoint =
      small({"--evaluate", MILLRACE_TRAIN_DATASET, "--checkpoint", checkpoint});
  std::vector<std::string> first = with_checkpoint;
  first.insert(first.end(), {"--stop-after", "8"});  // in the middle of epoch 1
  const auto begun = resnet18(first);
  ASSERT_EQ(begun.exit_code, 0) << begun.err;
  EXPECT_EQ(epoch_line(begun.out, 0), epoch_line(whole.out, 0));
  EXPECT_EQ(epoch_line(begun.out, 1), "");
  const auto gone_on = resnet18(with_checkpoint);
  ASSERT_EQ(gone_on.exit_code, 0) << gone_on.err;
  EXPECT_EQ(epoch_line(gone_on.out, 0), "");
  EXPECT_EQ(epoch_line(gone_on.out, 2), epoch_line(whole.out, 2));
  // A finished run has nothing left to do.
  EXPECT_EQ(resnet18(with_checkpoint).out.find("epoch"), std::string::npos);
}

TEST(ResNet18, TrainsWithWhatTuneMyTrainerFound) {
  const TemporaryFolder folder;
  const std::string tuned = folder / "tuned.json";
  const auto tune =
      run_program({MILLRACE_TUNE_MY_TRAINER, MILLRACE_TRAIN_DATASET, "--out", tuned, "--size", "32",
                   "--batch-size", "20", "--max-workers", "1", "--seconds", "2"});
  ASSERT_EQ(tune.exit_code, 0) << tune.err;
  EXPECT_THAT(tune.out, HasSubstr("the trainer's own step"));
  EXPECT_THAT(tune.out, HasSubstr("1 worker, prefetch "));
  const auto trained =
      resnet18({"--options", tuned, "--size", "32", "--epochs", "1", "--batch-size", "7"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_THAT(trained.out, StartsWith("1 workers, prefetch "));
  EXPECT_THAT(trained.out, HasSubstr(", batches of 20\n"));
  EXPECT_NE(epoch_line(trained.out, 0), "");
}

TEST(ResNet18, AnEpochHasEachRecordAsOftenAsItIsRepeated) {
  const std::vector<std::string> twice = {"--size",   "32", "--batch-size", "20",
                                          "--epochs", "1",  "--repeat",     "2"};
  const auto whole = resnet18(twice);
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_NE(epoch_line(whole.out, 0), "");
  std::vector<std::string> one_less = twice;
  one_less.insert(one_less.end(), {"--stop-after", "9"});
  EXPECT_EQ(epoch_line(resnet18(one_less).out, 0), "");
}

TEST(ResNet18, MeasuresItsRateWithMillraceAndOnSyntheticBatches) {
  const TemporaryFolder folder;
  const std::string json = folder / "rates.json";
  const auto measured =
      resnet18({"--size", "32", "--batch-size", "20", "--measure", "0.1", "--warm-up", "0",
                "--feed", "both", "--repeat", "3", "--json", json});
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  EXPECT_THAT(measured.out, StartsWith("synthetic: "));
  EXPECT_THAT(measured.out, HasSubstr("\nmillrace: "));
  EXPECT_EQ(measured.out.find("idle "), std::string::npos);  // the CPU has no stream

  std::ifstream file(json);
  std::vector<std::string> feeds;
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json rate = nlohmann::json::parse(line);
    feeds.push_back(rate.at("feed"));
    EXPECT_EQ(rate.at("program"), "resnet18");
    EXPECT_EQ(rate.at("device"), "cpu");
    EXPECT_EQ(rate.at("batch_size"), 20);
    EXPECT_EQ(rate.at("pixels"), 32);
    EXPECT_GE(rate.at("images"), 20);
    EXPECT_GT(rate.at("images_per_second"), 0);
    EXPECT_TRUE(rate.at("idle").is_null());
    EXPECT_EQ(rate.at("verdict").is_string(), rate.at("feed") == "millrace");
    EXPECT_EQ(rate.at("stall_seconds").is_number(), rate.at("feed") == "millrace");
    EXPECT_EQ(rate.at("workers") > 0, rate.at("feed") == "millrace");
  }
  EXPECT_THAT(feeds, ElementsAre("synthetic", "millrace", "synthetic"));
}

TEST(ResNet18, SaysWhatIsWrong) {
  EXPECT_EQ(resnet18({"--measure", "1", "--feed", "grass"}).err,
            "resnet18: --feed is \"grass\"; it can be millrace, synthetic or both\n");
  for (const char* seconds : {"nan", "-1", "1e308"}) {
    EXPECT_EQ(resnet18({"--measure", seconds}).err,
              "resnet18: --measure and --warm-up must be from 0 to 86400 seconds\n");
  }
  EXPECT_THAT(
      resnet18({"--checkpoint", MILLRACE_TRAIN_DATASET}).err,
      StartsWith(std::string("resnet18: ") + MILLRACE_TRAIN_DATASET + " is not a checkpoint: "));
  EXPECT_THAT(resnet18({"--device", "xla"}).err, StartsWith("resnet18: batches for --device xla"));
  EXPECT_THAT(resnet18({"--device", "sundial"}).err, HasSubstr("sundial"));
  EXPECT_EQ(resnet18({"--size", "8"}).err, "resnet18: --size must be from 32 to 4096\n");
}

}  // namespace
}  // namespace millrace
