// SPDX-License-Identifier: Apache-2.0
// Invalid command lines for all commands: each ends in one line that names the problem.
#include <gmock/gmock.h>
#include <millrace/dataset_writer.h>

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

/// Runs a command that must be refused with this exit code and a message by millrace that contains
/// `says`.
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
    /// Whether a fraction is valid.
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
      {{"recipe", "train", "--size"}},
      {{"decode", "x", "--recipe", "train", "--seed"}},
      {{"view", "x", "--record"}},
      {{"view", "x", "--record", "0", "--samples"}},
      {{"view", "x", "--record", "0", "--seed"}},
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
  // Read as octal, 010 would be 8.
  expect_refused({"topology", "--local-world", "010", "--local-rank", "10"}, 2,
                 "--local-rank 10 must be below --local-world 10");
}

class Files : public ::testing::Test {
 protected:
  Files() {
    write_jpeg(folder_ / "photos" / "a.jpg");
    EXPECT_EQ(pack(folder_ / "photos", set_).exit_code, 0);
    EXPECT_EQ(pack(folder_ / "photos", shards_, {"--shards", "1"}).exit_code, 0);
    fs::create_directories(folder_ / "empty");
    fs::create_directories(folder_ / "environment");
    fs::copy_file(set_, folder_ / "environment" / "data.mdb");
    write_text(folder_ / "nothing", "");
    write_text(folder_ / "text", "text\n");
    write_text(folder_ / "list.json", "[1]");
    write_text(folder_ / "shards.json", R"({"millrace_shards":1})");
    MDB_env* environment = nullptr;
    EXPECT_EQ(mdb_env_create(&environment), 0);
    EXPECT_EQ(mdb_env_open(environment, at("empty.mdb").c_str(), MDB_NOSUBDIR | MDB_NOLOCK, 0600),
              0);
    mdb_env_close(environment);
  }
  std::string at(const char* name) const { return folder_ / name; }

  const TemporaryFolder folder_;
  const std::string set_ = at("set.lmdb");
  const std::string shards_ = at("shards.lmdb");
};

TEST_F(Files, DatasetsAreDatasets) {
  const std::string long_name(300, 'n');
  const std::vector<std::pair<std::string, std::string>> paths = {
      {at("none"), "none does not exist; make it with"},
      {at("empty"), "it is a folder without a file data.mdb"},
      {at("nothing"), "nothing is empty; if it is a dataset, its packing was interrupted"},
      {at("empty.mdb"), "empty.mdb is an LMDB file with nothing in it; if it is a dataset, "},
      {at("text"), "it is not an LMDB file"},
      {at("list.json"), "it is not an LMDB file"},
      {at("shards.json"), "key 'shards' not found"},
      {set_ + "/x", "set.lmdb/x does not exist"},
      {"/dev/null", "it is neither file nor folder"},
      {"/dev/zero", "it is neither file nor folder"},
      {at(long_name.c_str()), "cannot be opened: File name too long"}};
  for (const auto& [path, says] : paths)
    for (std::vector<std::string> words : {std::vector<std::string>{"inspect"},
                                           {"verify"},
                                           {"view", "--record", "0"},
                                           {"bench"},
                                           {"tune"},
                                           {"diagnose"}}) {
      words.push_back(path);
      if (words[0] == "diagnose") words.insert(words.end(), {"--step-ms", "1"});
      expect_refused(words, 1, says);
    }
}

TEST_F(Files, NamesAreNames) {
  const std::string endless(100'000, 'n');
  for (const std::string& name : {std::string(), endless})
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"inspect", name},
          {"verify", name},
          {"bench", name},
          {"tune", name},
          {"diagnose", name, "--step-ms", "1"},
          {"pack", name, at("out")},
          {"pack", at("photos"), name},
          {"pack", at("photos"), at("out"), "--list", name},
          {"bench", set_, "--config", name},
          {"bench", set_, "--recipe", name},
          {"bench", set_, "--json", name},
          {"bench", set_, "--html", name},
          {"bench", set_, "--trace", name},
          {"tune", set_, "--out", name},
          {"tune", set_, "--json", name},
          {"tune", set_, "--html", name},
          {"diagnose", set_, "--step-ms", "1", "--json", name},
          {"diagnose", set_, "--step-ms", "1", "--html", name},
          {"inspect", set_, "--json", name},
          {"inspect", set_, "--record", "0", "--out", name},
          {"verify", set_, "--json", name},
          {"recipe", name},
          {"recipe", "train", "--out", name},
          {"decode", name},
          {"decode", set_, "--recipe", name},
          {"decode", set_, "--png", name},
          {"decode", set_, "--raw", name},
          {"view", name, "--record", "0"},
          {"view", set_, "--record", "0", "--png", name},
          {"topology", "--json", name}})
      expect_refused(words, 2, name.empty() ? ", not \"\"" : "nnn...\"");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"pack", at("photos"), "-"},
        {"tune", set_, "--out", "-"},
        {"tune", set_, "--html", "-"},
        {"bench", set_, "--trace", "-"},
        {"diagnose", set_, "--step-ms", "1", "--html", "-"}})
    expect_refused(words, 2, "must be a file to write, not \"-\"");
}

TEST_F(Files, WhatIsReadIsWhatItShouldBe) {
  write_text(folder_ / "long.json", std::string(3'000'000, ' '));
  for (const auto& [path, says] :
       std::vector<std::pair<std::string, std::string>>{{at("empty"), "is a folder"},
                                                        {at("none"), "no such file"},
                                                        {at("nothing"), "is not valid JSON: "},
                                                        {at("text"), "is not valid JSON: "},
                                                        {at("list.json"), "an object in { }"},
                                                        {at("long.json"), "longer than 1048576"},
                                                        {"/dev/null", "is not valid JSON: "},
                                                        {"/dev/zero", "longer than 1048576"}})
    for (const char* option : {"--config", "--recipe"}) {
      if (option == std::string("--recipe")) expect_refused({"recipe", path}, 1, says);
      expect_refused({"bench", set_, "--batches", "1", option, path}, 1, says);
      expect_refused({"bench", set_, "--batches", "1", option, path}, 1, path);
    }
  for (const auto& [path, says] : std::vector<std::pair<std::string, std::string>>{
           {at("empty"), "is a folder; a list of files is a file"},
           {at("none"), "No such file"},
           {at("text"), "text:1: \"text\" has no comma"},
           {at("long.json"), "long.json:1: the line is longer than any path"},
           {"/dev/zero", "/dev/zero:1: the line is longer than any path"},
           {set_, "set.lmdb:1: "},
           {"/dev/null", "there is no image to pack in /dev/null"}})
    expect_refused({"pack", at("photos"), at("out"), "--list", path}, 1, says);
  for (const auto& [path, says] : std::vector<std::pair<std::string, std::string>>{
           {at("nothing"), "nothing is empty, and not a tar"},
           {at("empty.mdb"), "empty.mdb is an LMDB file"},
           {at("text"), "text is neither a folder nor a tar that can be read"},
           {at("none"), "none does not exist"},
           {at("no*.tar"), "no*.tar matches no file"},
           {at("empty"), "there is no image to pack in "},
           {"/dev/zero", "/dev/zero is neither a folder nor a file"}})
    expect_refused({"pack", path, at("out")}, 1, says);
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

// The check is immediate: the runs would take a minute.
TEST_F(Files, OutputsAreTriedBeforehand) {
  const std::string long_name(300, 'n');
  for (const std::string& path : {at("none") + "/x", set_ + "/x", std::string("/proc/x"),
                                  at("empty"), at(long_name.c_str())}) {
    for (const char* option : {"--json", "--html", "--trace"})
      expect_refused({"bench", set_, "--seconds", "60", option, path}, 1,
                     path + ": cannot be written: ");
    for (const char* option : {"--json", "--html", "--out"})
      expect_refused({"tune", set_, option, path}, 1, path + ": cannot be written: ");
    for (const char* option : {"--json", "--html"})
      expect_refused({"diagnose", set_, "--step-ms", "60", "--seconds", "60", option, path}, 1,
                     path + ": cannot be written: ");
    expect_refused({"inspect", set_, "--json", path}, 1, path + ": cannot be written: ");
    expect_refused({"inspect", set_, "--record", "0", "--out", path}, 1, path);
    expect_refused({"verify", set_, "--json", path}, 1, path + ": cannot be written: ");
    expect_refused({"topology", "--json", path}, 1, path + ": cannot be written: ");
    expect_refused({"recipe", "eval", "--out", path}, 1, path + ": cannot be written: ");
    for (const char* option : {"--png", "--raw"})
      expect_refused({"decode", at("photos/a.jpg"), option, path}, 1,
                     path + ": cannot be written: ");
    expect_refused({"pack", "/dev/null/*", path}, 1, path);
  }
}

TEST_F(Files, WhatDoesNotGoTogether) {
  const std::string commands =
      "; commands are: pack, recode, index, inspect, verify, recipe, decode, view, bench, tune, "
      "diagnose, topology\nSee millrace --help.\n";
  expect_refused({"nosuch"}, 2, "unknown command 'nosuch'" + commands);
  expect_refused({"benhc", set_, "--batches", "3"}, 2, "unknown command 'benhc'" + commands);
  expect_refused({"nosuch", "bench", set_}, 2, "unknown command 'nosuch'" + commands);
  expect_refused({"\x1b[2J"}, 2, "unknown command '\\x1b[2J'");
  expect_refused({std::string(100'000, 'x')}, 2, "xxx...'; commands are: ");
  expect_refused({"bench"}, 2, "DATASET");
  expect_refused({"bench", set_, "--nosuch"}, 2, "--nosuch");
  expect_refused({"bench", set_, std::string(100'000, 'x')}, 2, "xxx...");
  expect_refused({"bench", set_, "\x1b[2J"}, 2, "\\x1b[2J");
  expect_refused({"bench", set_, "--seed", "1", "--seed", "2"}, 2, "--seed");
  expect_refused({"bench", set_, "--micro-batches", "5", "--batch-size", "2"}, 1, "micro_batches");
  expect_refused({"bench", set_, "--batch-size", "1048576", "--size", "8192"}, 1,
                 "cannot take 211106250358784 bytes of memory");
  expect_refused({"bench", set_, "--device", "cuda:99999"}, 2, "cuda:99999");
  expect_refused({"bench", set_, "--convert", "int9"}, 2, "not \"int9\"");
  for (const std::vector<std::string>& command : {std::vector<std::string>{"bench"},
                                                  {"tune", "--step-ms", "9"},
                                                  {"diagnose", "--step-ms", "9"}}) {
    std::vector<std::string> words = command;
    words.insert(words.begin() + 1, {set_, "--decode", "device"});
    expect_refused(words, 1,
                   "--decode device leaves work on images to the device, which needs --convert");
  }
  expect_refused({"bench", set_, "--decode-share", "1.5"}, 2, "not \"1.5\"");
  expect_refused({"bench", set_, "--decode-share", "0.5"}, 1,
                 "--decode-share 0.5 is a share of images for the device, and workers make all "
                 "images; add --decode device");
  expect_refused({"bench", set_, "--step", "gemm:0"}, 2, "not \"gemm:0\"");
  expect_refused({"inspect", set_, "--record", "1"}, 1, "has 1 record");
  expect_refused({"inspect", set_, "--record", "18446744073709551615"}, 1, "has 1 record");
  expect_refused({"inspect", set_, "--out", "x"}, 2, "--record");
  expect_refused({"inspect", set_, "--record", "0", "--out", "-", "--json", "-"}, 2, "both");
  expect_refused({"pack", at("photos"), at("o"), "--shards", "2"}, 1, "--shards 2 is more than");
  expect_refused({"pack", at("photos"), at("o"), "--resume", "--force"}, 2, "--resume");
  expect_refused({"pack", at("photos"), set_}, 1, "set.lmdb exists; --force replaces it");
  {
    DatasetWriter more(at("more"),
                       {.commit_bytes = 1, .source = read_raw(set_).description.at("source")});
    for (int record = 0; record < 3; ++record)
      more.append(open_dataset(set_)->make_reader()->read(0).fields());
  }
  expect_refused({"pack", at("photos"), at("more"), "--resume"}, 1,
                 "more cannot be resumed: 3 files went into it, and there are 1");
  expect_refused({"pack", at("photos"), at("photos"), at("o")}, 2,
                 "several inputs must all be tars, which ");
  expect_refused({"decode", "a", "b", "--png", "c"}, 2, "there must be one FILE");
  expect_refused({"decode", "a", "--png", "b", "--raw", "c"}, 2, "--png");
  expect_refused({"decode", "a", "--recipe", "eval", "--upright"}, 2, "--recipe");
  expect_refused({"decode", "a", "--recipe", "eval", "--size", "2x2"}, 2, "--recipe");
  for (const char* crop : {"1,2,3", "1,2,3,4,5", "1,2,0,4", "-1,2,3,4", "1,2,3,x", "1, 2, 3, 4"})
    expect_refused({"decode", "a", std::string("--crop=") + crop}, 2, "x,y,width,height");
  for (const char* size : {"224", "0x3", "3x", "3x4x5", "3X4", "70000x2"})
    expect_refused({"decode", "a", "--size", size}, 2, "must be WIDTHxHEIGHT in pixels, not ");
  expect_refused({"decode", "a", "--size", "2x2", "--filter", "cubic"}, 2,
                 "bilinear or bicubic or");
  expect_refused({"decode", "a", "--size", "2x2", "--like", "pillow"}, 2, "pillow-13 or pillow-12");
  expect_refused({"topology", "--synthetic", std::string(100'000, '1')}, 2, "111...\" has more");
  expect_refused({"topology", "--synthetic", std::string(100'000, 'x')}, 2, "xxx...\" is no");
}

TEST(CommandLines, UnexpectedArgumentsAreNamedInTheirOrder) {
  expect_refused({"tune", "x", "--budget", "2", "y"}, 2,
                 "The following arguments were not expected: --budget 2 y\n");
  expect_refused({"--fast", "bench", "x", "y", "--budget"}, 2,
                 "The following arguments were not expected: --fast y --budget\n");
  expect_refused({"bench", "x", "--budget"}, 2,
                 "The following argument was not expected: --budget\n");
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
