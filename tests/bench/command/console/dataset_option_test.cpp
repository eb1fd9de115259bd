// SPDX-License-Identifier: Apache-2.0
// Options for opening a dataset, in all commands that read one.
#include "command/console/dataset_option.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "support/packs.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace testing;
using Words = std::vector<std::string>;

/// A short run of a command that reads a dataset.
Words line_of(const std::string& command, const std::string& dataset) {
  Words words{command, dataset};
  const auto add = [&](const Words& more) { words.insert(words.end(), more.begin(), more.end()); };
  if (command == "bench") add({"--batches", "3", "--warmup", "0", "--batch-size", "2", "--digest"});
  if (command == "tune") add({"--budget-s", "0.5", "--accept-noise"});
  if (command == "diagnose") add({"--step-ms", "1", "--seconds", "0.02", "--rounds", "2"});
  if (command == "view") add({"--record", "1", "--png", "-"});
  return words;
}

const std::vector<std::string> commands = {"inspect", "verify",   "index", "bench",
                                           "tune",    "diagnose", "view"};

class DatasetOption : public ::testing::Test {
 protected:
  DatasetOption() {
    for (const char* name : {"a.jpg", "b.jpg", "c.jpg"}) write_jpeg(folder_ / "photos" / name);
    EXPECT_EQ(pack(folder_ / "photos", set_).exit_code, 0);
  }

  /// Opens the dataset as a command does, and returns whether its file is mapped meanwhile.
  bool is_mapped(Words words) const {
    CLI::App app;
    cli::DatasetArguments arguments;
    cli::add_dataset(app, arguments);
    words.push_back(set_);
    app.parse(std::move(words));
    const auto dataset = cli::open_as_given(arguments);
    EXPECT_EQ(dataset->make_reader()->read(2).text("path"), "c.jpg");
    std::ifstream maps("/proc/self/maps");
    return std::string(std::istreambuf_iterator<char>(maps), {}).find(set_) != std::string::npos;
  }

  const TemporaryFolder folder_;
  const std::string set_ = folder_ / "set.lmdb";
};

TEST_F(DatasetOption, NoMapReadsWithoutMap) {
  EXPECT_TRUE(is_mapped({}));
  EXPECT_FALSE(is_mapped({"--no-map"}));
}

TEST_F(DatasetOption, AllCommandsHaveIt) {
  for (const std::string& command : commands) {
    Words words = line_of(command, set_);
    words.emplace_back("--no-map");
    const auto result = millrace_command(words);
    EXPECT_EQ(result.exit_code, 0) << command << ": " << result.err;
    words.insert(words.end(), {"--format", "nosuch"});
    const auto refused = millrace_command(words);
    EXPECT_EQ(refused.exit_code, 1) << command;
    EXPECT_THAT(refused.err, HasSubstr("there is no format \"nosuch\"; there are: ")) << command;
  }
}

TEST_F(DatasetOption, ResultsAreTheSameWithoutMap) {
  const auto pictures = [&](const Words& further) {
    Words words = line_of("view", set_);
    words.insert(words.end(), further.begin(), further.end());
    return millrace_command(words).out;
  };
  EXPECT_EQ(pictures({"--no-map"}), pictures({}));
  const auto run = [&](const Words& further) {
    Words words = line_of("bench", set_);
    words.insert(words.end(), {"--json", "-"});
    words.insert(words.end(), further.begin(), further.end());
    return nlohmann::json::parse(millrace_command(words).out);
  };
  const auto mapped = run({});
  const auto called = run({"--no-map"});
  EXPECT_EQ(called["digest"], mapped["digest"]);
  EXPECT_EQ(mapped["options"]["map"], true);
  EXPECT_EQ(called["options"]["map"], false);
}

TEST_F(DatasetOption, NamesAreNames) {
  for (const char* option : {"--format", "--images"})
    EXPECT_THAT(millrace_command({"inspect", set_, option, ""}).err,
                HasSubstr(std::string(option) + ": must be "));
  const auto result = millrace_command({"inspect", set_, "--labels", "y"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--labels requires --images"));
}

}  // namespace
}  // namespace millrace
