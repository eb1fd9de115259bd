// SPDX-License-Identifier: Apache-2.0
//
// The command in which one instruction set makes wrong weights
// (augment/resample/wrong_bilinear.cpp).
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>

#include "augment/resample/vector_targets.h"
#include "support/jpeg_samples.h"
#include "support/pictures.h"
#include "support/run_program.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using namespace testing;
using Json = nlohmann::json;

class WrongSetCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    if (vector_targets().size() == 1) GTEST_SKIP() << "one instruction set alone is compiled";
  }
};

TEST_F(WrongSetCommand, TopologyTellsWhichSetsAreWrong) {
  const auto result = run_program({MILLRACE_WITH_WRONG_SET, "topology"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(
      result.out,
      AllOf(ContainsRegex("\n  instruction set   [A-Z0-9_]+ \\(wrong pixels with [A-Z0-9_]+"),
            HasSubstr("\nwarning: instruction set ")));

  const auto in_json = run_program({MILLRACE_WITH_WRONG_SET, "topology", "--json", "-"});
  const Json json = Json::parse(in_json.out);
  EXPECT_THAT(json.at("wrong_instruction_sets"), Not(IsEmpty()));
  EXPECT_THAT(json.at("wrong_instruction_sets"), Not(Contains(json.at("instruction_set"))));
  EXPECT_THAT(json.at("placement").at("warnings").dump(), HasSubstr("self-check"));
}

TEST_F(WrongSetCommand, BenchWarnsAndMakesTheSamePixels) {
  const TemporaryFolder folder;
  const std::string path = (folder / "pictures.lmdb").string();
  write_pictures(path, std::vector<Bytes>(2, encode(noise(60, 60, 1), {})));
  const auto bench = [&](const char* program) {
    const auto result = run_program({program, "bench", path, "--batches", "9", "--batch-size", "2",
                                     "--warmup", "0", "--digest", "--json", "-"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out);
  };
  const Json right = bench(MILLRACE_COMMAND);
  const Json wrong = bench(MILLRACE_WITH_WRONG_SET);
  EXPECT_THAT(right.at("warnings").dump(), Not(HasSubstr("instruction set")));
  EXPECT_THAT(wrong.at("warnings").dump(), HasSubstr("instruction set"));
  EXPECT_EQ(wrong.at("digest"), right.at("digest"));
}

}  // namespace
}  // namespace millrace
