// SPDX-License-Identifier: Apache-2.0
// Command lines that make no sense, through all commands: each ends in one line that names what is
// wrong.
#include <gmock/gmock.h>

#include <algorithm>

#include "support/packs.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using namespace testing;
using Result = RunningProgram::Result;

std::string text_of(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += word.substr(0, 100) + " ";
  return text;
}

/// Runs a command that must be refused: with that exit code, and a message that has `says` in it
/// and is millrace's own.
void expect_refused(const std::vector<std::string>& words, int exit_code, const std::string& says) {
  const std::string line = text_of(words);
  const Result result = millrace_command(words);
  EXPECT_EQ(result.exit_code, exit_code) << line << result.err.substr(0, 500);
  EXPECT_EQ(result.out, "") << line;
  EXPECT_THAT(result.err, StartsWith("millrace: ")) << line;
  EXPECT_THAT(result.err, HasSubstr(says)) << line;
  for (const char* library :
       {"std::", "basic_", "vector", "[json", "filesystem error", "Value ", "000000", "stoul"})
    EXPECT_THAT(result.err, Not(HasSubstr(library))) << line;
  EXPECT_TRUE(std::ranges::all_of(result.err, [](char letter) {
    return letter == '\n' || (static_cast<unsigned char>(letter) >= 0x20 && letter != 0x7F);
  })) << line;
  EXPECT_THAT(result.err, SizeIs(Le(1000u))) << line;
}

TEST(CommandLines, NumbersAreNumbersInTheirRange) {
  struct Option {
    std::vector<std::string> words;
    /// Whether a fraction is fine.
    bool real = false;
  };
  const std::vector<Option> options = {
      {{"bench", "x", "--seed"}},
      {{"bench", "x", "--size"}},
      {{"bench", "x", "--batch-size"}},
      {{"bench", "x", "--workers"}},
      {{"bench", "x", "--prefetch"}},
      {{"bench", "x", "--micro-batches"}},
      {{"bench", "x", "--batches"}},
      {{"bench", "x", "--warmup"}},
      {{"bench", "x", "--step-ms"}, true},
      {{"bench", "x", "--seconds"}, true},
      {{"bench", "x", "--copy-gb-s"}, true},
      {{"bench", "x", "--ceiling", "--ceiling-seconds"}, true},
      {{"tune", "x", "--seed"}},
      {{"tune", "x", "--batch-size"}},
      {{"tune", "x", "--max-workers"}},
      {{"tune", "x", "--memory"}, true},
      {{"tune", "x", "--step-ms"}, true},
      {{"tune", "x", "--p99-ms"}, true},
      {{"tune", "x", "--budget-s"}, true},
      {{"diagnose", "x", "--step-ms", "1", "--rounds"}},
      {{"diagnose", "x", "--step-ms", "1", "--batches"}},
      {{"diagnose", "x", "--step-ms", "1", "--seed"}},
      {{"diagnose", "x", "--step-ms", "1", "--seconds"}, true},
      {{"diagnose", "x", "--step-ms"}, true},
      {{"topology", "--workers"}},
      {{"topology", "--launch-cores"}},
      {{"topology", "--local-world", "4", "--local-rank"}},
      {{"topology", "--local-rank", "0", "--local-world"}},
      {{"inspect", "x", "--record"}},
      {{"inspect", "x", "--sample"}},
      {{"inspect", "x", "--workers"}},
      {{"verify", "x", "--limit"}},
      {{"verify", "x", "--workers"}},
      {{"pack", "x", "y", "--shards"}},
      {{"pack", "x", "y", "--workers"}},
      {{"pack", "x", "y", "--shard-bytes"}, true},
      {{"pack", "x", "y", "--commit-bytes"}, true},
  };
  const std::vector<std::string> bad = {"nan", "-1",   "18446744073709551616",
                                        "",    "0x10", std::string(10'000, '9')};
  for (const Option& option : options) {
    const std::string name = option.words.back();
    for (const std::string& value : bad) {
      std::vector<std::string> words = option.words;
      words.push_back(value);
      expect_refused(words, 2, name + ": must be ");
    }
    std::vector<std::string> words = option.words;
    words.emplace_back("1.5");
    if (!option.real) expect_refused(words, 2, name + ": must be ");
  }
}

TEST(CommandLines, NumbersAreDecimal) {
  for (const char* rank : {"3", "03", "003"})
    EXPECT_EQ(millrace_command({"topology", "--local-world", "4", "--local-rank", rank}).exit_code,
              0);
  // An octal 010 would be 8.
  expect_refused({"topology", "--local-world", "010", "--local-rank", "10"}, 2,
                 "--local-rank 10 must be below --local-world 10");
}

TEST(CommandLines, BytesHaveUnitsAndFractions) {
  for (const char* bytes : {"1", "512M", "1.5G", "0.5kB", "2 GiB", "7e", "1.25mib"})
    expect_refused({"tune", "x", "--memory", bytes}, 1, "x does not exist");
  for (const char* bytes : {"0", "0.1", "8E", "1.5X", "1.5.5", "G", ".", "1e3", "1kk", "1i", "1 2"})
    expect_refused(
        {"tune", "x", "--memory", bytes}, 2,
        "--memory: must be bytes, such as 500M, 1.5G or 2GiB, not \"" + std::string(bytes) + "\"");
}

}  // namespace
}  // namespace millrace
