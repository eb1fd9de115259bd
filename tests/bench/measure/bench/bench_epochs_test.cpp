// SPDX-License-Identifier: Apache-2.0
//
// `bench --epochs`, and the hints and samples that it keeps between epochs.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/pictures.h"
#include "support/run_program.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using namespace testing;
using Json = nlohmann::json;
using Result = RunningProgram::Result;

class BenchEpochs : public OverPictures {
 protected:
  BenchEpochs() : OverPictures(pictures(50, 60, 90, 1)) {}

  Result bench(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {MILLRACE_COMMAND, "bench", dataset_.string()});
    return run_program(arguments);
  }
  Json epochs(const std::string& index_bytes) const {
    const Result result = bench({"--epochs", "3", "--batch-size", "16", "--size", "48", "--digest",
                                 "--index-bytes", index_bytes, "--json", "-"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out);
  }
};

TEST_F(BenchEpochs, HaveARateEachAndTheSameBatchesWhateverIsNoted) {
  const Json json = epochs("1MB");
  EXPECT_EQ(json.at("batches"), 9);
  EXPECT_EQ(json.at("options").at("warmup"), 0);
  EXPECT_EQ(json.at("epoch_samples_per_second").size(), 3U);
  for (const Json& rate : json.at("epoch_samples_per_second")) EXPECT_GT(rate.get<double>(), 0);
  EXPECT_GT(json.at("index_mb").get<double>(), 0.005);
  const Json few = epochs("2000");
  EXPECT_GT(few.at("index_mb").get<double>(), 0);
  EXPECT_LE(few.at("index_mb").get<double>(), 0.002);
  const Json none = epochs("0");
  EXPECT_EQ(none.at("index_mb"), 0);
  for (const Json& other : {few, none}) EXPECT_EQ(other.at("digest"), json.at("digest"));
}

TEST_F(BenchEpochs, TakeImagesFromMemoryWhereTheyAreTheSame) {
  const std::vector<std::string> eval{"--recipe",     "eval", "--size",   "32",     "--epochs", "3",
                                      "--batch-size", "10",   "--digest", "--json", "-"};
  const auto run = [&](const std::string& cache_bytes) {
    std::vector<std::string> arguments = eval;
    // With one worker: one of two could take a record again while the other still makes it.
    arguments.insert(arguments.end(), {"--workers", "1", "--cache-bytes", cache_bytes});
    const Result result = bench(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out);
  };
  const Json cached = run("1MB");
  EXPECT_GE(cached.at("cache_hits"), 100);
  EXPECT_GT(cached.at("cache_mb").get<double>(), 0.15);
  EXPECT_EQ(cached.at("options").at("cache_bytes"), 1'000'000);
  const Json plain = run("0");
  EXPECT_EQ(plain.at("cache_hits"), 0);
  EXPECT_EQ(plain.at("digest"), cached.at("digest"));
}

TEST_F(BenchEpochs, AreSaidToPeople) {
  const Result result = bench({"--epochs", "2", "--batch-size", "16", "--size", "48"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* text : {"samples/s of each epoch", "record hints", "6 batches in"})
    EXPECT_THAT(result.out, HasSubstr(text));
}

TEST_F(BenchEpochs, HaveAWholeBatch) {
  const Result result = bench({"--epochs", "2", "--batch-size", "51"});
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_THAT(result.err, HasSubstr("the batch size is 51, more than the dataset's 50 records"));
}

TEST_F(BenchEpochs, GoWithNoOtherLength) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--epochs", "2", "--batches", "9"},
        {"--epochs", "2", "--seconds", "1"},
        {"--epochs", "2", "--warmup", "1"},
        {"--epochs", "0"},
        {"--index-bytes", "many"},
        {"--cache-bytes", "many"}})
    EXPECT_EQ(bench(arguments).exit_code, 2) << arguments[0];
  const Result digest = bench({"--digest"});
  EXPECT_EQ(digest.exit_code, 2);
  EXPECT_THAT(digest.err, HasSubstr("--batches or --epochs"));
}

}  // namespace
}  // namespace millrace
