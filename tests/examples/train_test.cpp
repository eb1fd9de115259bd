// SPDX-License-Identifier: Apache-2.0
//
// The example trainer on made-up pictures.
#include <gmock/gmock.h>

#include <string>

#include "support/run_program.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using testing::run_program;
using testing::RunningProgram;

RunningProgram::Result train(std::vector<std::string> options) {
  options.insert(options.begin(), {MILLRACE_TRAIN, MILLRACE_TRAIN_DATASET});
  return run_program(options);
}

double number_behind(const std::string& text, const std::string& before) {
  const std::size_t at = text.find(before);
  if (at == std::string::npos) {
    ADD_FAILURE() << "there is no \"" << before << "\" in\n" << text;
    return 0;
  }
  return std::stod(text.substr(at + before.size()));
}

TEST(Train, TheLossFalls) {
  const auto result = train({"--epochs", "10"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(number_behind(result.out, "epoch 9: loss "),
            0.8 * number_behind(result.out, "epoch 0: loss "))
      << result.out;
  EXPECT_THAT(result.out, HasSubstr("idle "));
  EXPECT_THAT(result.out, HasSubstr(" bounds the run"));
}

// The parts' gradients are summed up in the samples' order, so only the time differs.
TEST(Train, AccumulatingPartsTrainsTheSame) {
  const auto epochs = [](const std::string& out) { return out.substr(0, out.find("idle ")); };
  const auto whole = train({"--epochs", "3"});
  const auto parts = train({"--epochs", "3", "--accumulate", "5"});
  ASSERT_EQ(parts.exit_code, 0) << parts.err;
  EXPECT_THAT(epochs(whole.out), HasSubstr("epoch 2: loss "));
  EXPECT_EQ(epochs(parts.out), epochs(whole.out));
}

TEST(Train, TheDeviceCanBeNamed) {
  const auto result = train({"--epochs", "1", "--device", "host"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("on host\n"));
  for (const char* device : {"gpu", "cuda", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", ""})
    EXPECT_EQ(train({"--device", device}).err,
              std::string("train: --device is \"") + device +
                  "\"; it can be auto, host, cuda:0, cuda:1 ...\n");
}

TEST(Train, SaysThatThereIsNoGpu) {
  const auto result = train({"--epochs", "1", "--device", "cuda:0"});
  if (result.exit_code == 0) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, ::testing::MatchesRegex("train: no CUDA device[^\n]*\n"));
  EXPECT_THAT(train({"--epochs", "1"}).out, HasSubstr("on host\n"));
}

#ifdef MILLRACE_TRAIN_ON_STAND_IN
// Over the stand-in for the CUDA runtime: as on the host, except for the order of summing floats.
TEST(Train, OnCudaItTrainsAsOnTheHost) {
  const std::vector<std::string> options{MILLRACE_TRAIN_DATASET, "--epochs", "3", "--batch-size",
                                         "16"};
  const auto run = [&](const char* program, std::vector<std::string> more) {
    more.insert(more.begin(), options.begin(), options.end());
    more.insert(more.begin(), program);
    const auto result = run_program(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  const std::string host = run(MILLRACE_TRAIN, {"--device", "host"});
  for (const char* parts : {"1", "3"}) {
    const std::string cuda =
        run(MILLRACE_TRAIN_ON_STAND_IN, {"--accumulate", parts});  // --device auto finds it
    EXPECT_THAT(cuda, HasSubstr("on cuda:0\n"));
    for (const char* before : {"epoch 0: loss ", "epoch 2: loss "})
      EXPECT_NEAR(number_behind(cuda, before), number_behind(host, before), 0.01) << cuda << host;
    EXPECT_THAT(cuda, HasSubstr(" bounds the run"));
  }
}
#endif

TEST(Train, SaysWhatIsWrong) {
  EXPECT_THAT(train({"--epochs"}).err, HasSubstr("train: --epochs needs a value"));
  EXPECT_THAT(train({"--epochs", "ten"}).err, HasSubstr("train: --epochs is \"ten\""));
  EXPECT_THAT(train({"--eopchs", "3"}).err, HasSubstr("train: unknown option --eopchs"));
  EXPECT_THAT(train({"--holdout", "1"}).err, HasSubstr("--holdout"));
  const auto missing = run_program({MILLRACE_TRAIN, "/no/such.lmdb"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("/no/such.lmdb"));
}

}  // namespace
}  // namespace millrace
