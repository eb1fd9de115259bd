// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/recipe.h>

#include "support/packs.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using namespace testing;
using Result = RunningProgram::Result;

TEST(RecipeCommand, PrintsAPresetWithALineForEachOperation) {
  const Result train = millrace_command({"recipe", "train"});
  EXPECT_EQ(train.exit_code, 0) << train.err;
  EXPECT_THAT(train.out, HasSubstr("{\n  \"output\": [224,224],\n  \"like\": \"pillow-13\",\n"));
  EXPECT_THAT(train.out, HasSubstr("\n    {\"op\":\"random_resized_crop\","));
  EXPECT_EQ(Recipe::from_json(train.out), Recipe::train());
  const Result eval = millrace_command({"recipe", "eval", "--size", "160"});
  EXPECT_EQ(Recipe::from_json(eval.out), Recipe::eval(160));
}

TEST(RecipeCommand, ChecksAFileAndPrintsHowItIsUnderstood) {
  const TemporaryFolder folder;
  const std::string file = folder / "recipe.json";
  EXPECT_EQ(millrace_command({"recipe", "eval", "--out", file}).exit_code, 0);
  const Result again = millrace_command({"recipe", file});
  EXPECT_EQ(again.out, millrace_command({"recipe", "eval"}).out);
  write_text(file, R"({"ops": [{"op": "resize", "size": 0}, {"op": "center_crop"}]})");
  const Result wrong = millrace_command({"recipe", file});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_EQ(wrong.out, "");
  EXPECT_EQ(wrong.err,
            "millrace: " + file + ": ops[0] (resize): \"size\" is 0, must be in 1..16384\n");
}

TEST(RecipeCommand, ASizeBesideAFileIsRefused) {
  const TemporaryFolder folder;
  const std::string file = folder / "recipe.json";
  EXPECT_EQ(millrace_command({"recipe", "eval", "--out", file}).exit_code, 0);
  const std::string error =
      "millrace: " + file + ": --size 160 is for presets; \"output\" in the file is its size\n";
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"recipe", file, "--size", "160"},
        {"bench", file, "--recipe", file, "--size", "160"}}) {
    const Result result = millrace_command(command);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err, error);
  }
}

TEST(RecipeCommand, DoesNotReplaceTheFileThatItReads) {
  const TemporaryFolder folder;
  const std::string file = folder / "recipe.json";
  EXPECT_EQ(millrace_command({"recipe", "eval", "--out", file}).exit_code, 0);
  const Result result = millrace_command({"recipe", file, "--out", file});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("the command reads it"));
}

}  // namespace
}  // namespace millrace
