// SPDX-License-Identifier: Apache-2.0
//
// The example trainer on made-up pictures.
#include <gmock/gmock.h>

#include <string>

#include "run_program.h"

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
  EXPECT_LT(number_behind(result.out, "epoch 9: loss "), 0.8 * number_behind(result.out, "epoch 0: loss ")) << result.out;
  EXPECT_THAT(result.out, HasSubstr("idle "));
  EXPECT_THAT(result.out, HasSubstr(" bounds the run"));
}

// The parts' gradients are summed up in the samples' order, so nothing but time differs.
TEST(Train, AccumulatingPartsTrainsTheSame) {
  const auto epochs = [](const std::string& out) { return out.substr(0, out.find("idle ")); };
  const auto whole = train({"--epochs", "3"});
  const auto parts = train({"--epochs", "3", "--accumulate", "5"});
  ASSERT_EQ(parts.exit_code, 0) << parts.err;
  EXPECT_THAT(epochs(whole.out), HasSubstr("epoch 2: loss "));
  EXPECT_EQ(epochs(parts.out), epochs(whole.out));
}

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
