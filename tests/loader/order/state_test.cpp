// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/error.h>
#include <millrace/state.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "support/run_program.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const State whole{.seed = UINT64_MAX,
                  .position = (std::uint64_t{1} << 62) + 1,
                  .sampler = 0xAB,
                  .global_batch = 256,
                  .dataset = UINT64_MAX,
                  .recipe = 0};

TEST(State, IsOneLineOfJson) {
  EXPECT_EQ(
      (State{.seed = 7,
             .position = 1280,
             .sampler = 0x0B1E,
             .global_batch = 256,
             .dataset = 1,
             .recipe = 0xF00000000000000F})
          .to_json(),
      R"({"format":1,"seed":7,"position":1280,"sampler":"0000000000000b1e","global_batch":256,)"
      R"("dataset":"0000000000000001","recipe":"f00000000000000f"})");
  EXPECT_EQ((State{.seed = 7, .position = 0}).to_json(), R"({"format":1,"seed":7,"position":0})");
}

TEST(State, ComesBackAsItWas) {
  EXPECT_EQ(State::from_json(whole.to_json()), whole);
  for (auto leave_out : {&State::sampler, &State::global_batch, &State::dataset, &State::recipe}) {
    State part = whole;
    (part.*leave_out).reset();
    EXPECT_EQ(State::from_json(part.to_json()), part);
  }
}

TEST(State, ComesBackFromPythonAsItWas) {
  if (!std::filesystem::exists("/usr/bin/python3")) GTEST_SKIP() << "/usr/bin/python3 is missing";
  // The next numbers that a double cannot hold, and the largest.
  for (const std::uint64_t number : {(std::uint64_t{1} << 53) + 1, UINT64_MAX - 1, UINT64_MAX}) {
    const State state{.seed = number,
                      .position = number,
                      .window = number,
                      .sampler = number,
                      .global_batch = number,
                      .dataset = number,
                      .recipe = number,
                      .new_weights = {{number, number}}};
    EXPECT_EQ(State::from_json(state.to_json()), state);
    const auto python = testing::run_program(
        {"/usr/bin/python3", "-c",
         "import json, sys; print(json.dumps(json.loads(sys.argv[1]), indent=1))",
         state.to_json()});
    ASSERT_EQ(python.exit_code, 0) << python.err;
    EXPECT_EQ(State::from_json(python.out), state);
  }
}

std::string complaint(const std::string& json) {
  try {
    (void)State::from_json(json, "run/7.state");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("run/7.state: "));
    return error.what();
  }
  return "taken";
}

TEST(State, SaysWhatIsWrongInItsJson) {
  EXPECT_THAT(complaint(""), HasSubstr("not valid JSON"));
  EXPECT_THAT(complaint("{\"format\":1,"), HasSubstr("not valid JSON"));
  EXPECT_THAT(complaint("[]"), HasSubstr("must hold an object"));
  EXPECT_THAT(complaint("{}"), HasSubstr("\"format\" is missing"));
  EXPECT_THAT(complaint(R"({"format":2})"), HasSubstr("\"format\" is 2, newer than 1"));
  EXPECT_THAT(complaint(R"({"format":1,"seed":1})"), HasSubstr("\"position\" is missing"));
  EXPECT_THAT(complaint(R"({"format":1,"position":1})"), HasSubstr("\"seed\" is missing"));
  EXPECT_THAT(complaint(R"({"format":1,"seed":-1,"position":1})"), HasSubstr("\"seed\" is -1"));
  // Numbers that a reader has made doubles are errors, not other numbers.
  for (const char* number : {"9.007199254740993e15", "1e3", "7.0", "18446744073709551616"})
    EXPECT_THAT(complaint(R"({"format":1,"seed":)" + std::string(number) + R"(,"position":1})"),
                HasSubstr("\"seed\" is "));
  EXPECT_THAT(complaint(R"({"format":1,"seed":1,"position":"1"})"),
              HasSubstr("\"position\" is \"1\""));
  EXPECT_THAT(complaint(R"({"format":1,"seed":1,"position":1,"epoch":1})"),
              HasSubstr("unknown key \"epoch\""));
  EXPECT_THAT(complaint(R"({"format":1,"seed":1,"position":1,"global_batch":0})"),
              HasSubstr("\"global_batch\" is 0"));
  for (const char* hash : {"\"1\"", "1", "\"000000000000000g\"", "\"00000000000000001\"",
                           "\"+000000000000001\"", "null"})
    EXPECT_THAT(
        complaint(std::string(R"({"format":1,"seed":1,"position":1,"dataset":)") + hash + "}"),
        HasSubstr("\"dataset\" is " + std::string(hash)));
}

TEST(State, NamesTheWindowOfAStream) {
  const State state{.seed = 7, .position = 1280, .window = 1024};
  EXPECT_EQ(state.to_json(), R"({"format":1,"seed":7,"position":1280,"window":1024})");
  EXPECT_EQ(State::from_json(state.to_json()), state);
  EXPECT_THAT(complaint(R"({"format":1,"seed":7,"position":1280,"window":0})"),
              HasSubstr("\"window\" is 0"));
  EXPECT_THAT(complaint(R"({"format":1,"seed":7,"position":1280,"window":"a"})"),
              HasSubstr("\"window\""));
}

TEST(State, NamesTheWeightsOfLaterEpochs) {
  State state{.seed = 7, .position = 8, .sampler = 1, .new_weights = {{5, 0xAB}, {9, 0xCD}}};
  EXPECT_EQ(
      state.to_json(),
      R"({"format":1,"seed":7,"position":8,"sampler":"0000000000000001","new_weights":)"
      R"([{"epoch":5,"sampler":"00000000000000ab"},{"epoch":9,"sampler":"00000000000000cd"}]})");
  EXPECT_EQ(State::from_json(state.to_json()), state);
  EXPECT_THAT(state_differences(state, state), IsEmpty());
  State other = state;
  other.new_weights = {{5, 0xAC}, {8, 0xCD}};
  EXPECT_THAT(state_differences(state, other),
              ElementsAre("the order with the new weights of epoch 5 (Order::reweighted) was "
                          "00000000000000ab, here it is 00000000000000ac",
                          HasSubstr("epoch 8 (Order::reweighted) was not set, here it is"),
                          HasSubstr("epoch 9 (Order::reweighted) was 00000000000000cd, here it "
                                    "is not set")));
  other.sampler.reset();
  EXPECT_THAT(state_differences(state, other), IsEmpty());

  const auto complaint_of = [](const std::string& list) {
    return complaint(R"({"format":1,"seed":1,"position":1,"new_weights":)" + list + "}");
  };
  EXPECT_THAT(complaint_of("{}"), HasSubstr("\"new_weights\" is {}"));
  EXPECT_THAT(complaint_of("[]"), HasSubstr("\"new_weights\" is []"));
  EXPECT_THAT(complaint_of("[5]"), HasSubstr("\"new_weights\" is [5]"));
  EXPECT_THAT(complaint_of(R"([{"epoch":5}])"), HasSubstr("sampler"));
  EXPECT_THAT(complaint_of(R"([{"epoch":0,"sampler":"00000000000000ab"}])"), HasSubstr("is 0"));
  EXPECT_THAT(complaint_of(R"([{"epoch":5,"sampler":"ab"}])"), HasSubstr("\"ab\""));
  EXPECT_THAT(complaint_of(R"([{"epoch":5,"sampler":"00000000000000ab"},)"
                           R"({"epoch":5,"sampler":"00000000000000ab"}])"),
              HasSubstr("is 5"));
}

TEST(State, DiffersByWhatBothSay) {
  EXPECT_THAT(state_differences(whole, whole), IsEmpty());
  State other = whole;
  other.position = 3;
  EXPECT_THAT(state_differences(whole, other), IsEmpty()) << "another place of the same run";
  other.recipe.reset();
  EXPECT_THAT(state_differences(whole, other), IsEmpty());
  EXPECT_THAT(state_differences(other, whole), IsEmpty());
  other.global_batch = 128;
  other.seed = 4;
  EXPECT_THAT(state_differences(whole, other),
              ElementsAre("the seed was 18446744073709551615, here it is 4",
                          HasSubstr("was 256, here it is 128")));
}

}  // namespace
}  // namespace millrace
