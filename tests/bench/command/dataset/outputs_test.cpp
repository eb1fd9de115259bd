// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/dataset_writer.h>
#include <sys/stat.h>

#include "support/packs.h"
#include "support/tars.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using namespace testing;
using Result = RunningProgram::Result;

std::string text_of(const fs::path& path) {
  const Bytes bytes = read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class Outputs : public ::testing::Test {
 protected:
  Outputs() {
    for (int image = 0; image < 6; ++image)
      write_jpeg(folder_ / "photos" / (std::to_string(image) + ".jpg"), 60 + image * 20, 50);
    EXPECT_EQ(pack(folder_ / "photos", set_).exit_code, 0);
    EXPECT_EQ(pack(folder_ / "photos", list_, {"--shards", "2"}).exit_code, 0);
  }

  /// Expects that a command refuses to write `output` for this reason, and leaves it unchanged.
  void expect_refused(const std::vector<std::string>& command, const fs::path& output,
                      const std::string& reason) const {
    const std::string before = text_of(output);
    const Result result = millrace_command(command);
    std::string line;
    for (const std::string& word : command) line += word + " ";
    EXPECT_EQ(result.exit_code, 1) << line;
    EXPECT_THAT(result.err, HasSubstr(output.string() + ": cannot be written: " + reason)) << line;
    EXPECT_TRUE(text_of(output) == before) << line << "changed it";
  }

  const TemporaryFolder folder_;
  const fs::path set_ = folder_ / "set.lmdb";
  const fs::path list_ = folder_ / "list.lmdb";
};

TEST_F(Outputs, NeverReplaceADataset) {
  const fs::path shard = folder_ / "list-00001-of-00002.lmdb";
  const fs::path linked = folder_ / "linked.lmdb";
  fs::create_symlink(list_, linked);
  const fs::path other = folder_ / "other.lmdb";
  ASSERT_EQ(pack(folder_ / "photos", other).exit_code, 0);
  for (const fs::path& output : {set_, list_, shard, linked, other}) {
    const auto expect = [&](std::vector<std::string> command) {
      command.push_back(output);
      expect_refused(command, output, "it is a dataset");
    };
    expect({"verify", set_, "--json"});
    expect({"inspect", set_, "--json"});
    expect({"inspect", set_, "--record", "0", "--force", "--out"});
    expect({"topology", "--json"});
    for (const char* option : {"--json", "--html", "--trace"})
      expect({"bench", set_, "--batch-size", "2", "--batches", "1", option});
    for (const char* option : {"--out", "--json", "--html"})
      expect({"tune", set_, "--batch-size", "2", "--budget-s", "1", option});
    for (const char* option : {"--json", "--html"})
      expect({"diagnose", set_, "--batch-size", "2", "--step-ms", "1", "--batches", "1", option});
  }
  EXPECT_EQ(millrace_command({"verify", set_}).exit_code, 0);
  EXPECT_EQ(millrace_command({"verify", list_}).exit_code, 0);
}

TEST_F(Outputs, NeverReplaceAnInput) {
  const fs::path recipe = folder_ / "recipe.json";
  write_text(recipe, R"({"output": [32, 32]})");
  expect_refused({"bench", set_, "--batches", "1", "--recipe", recipe, "--json", recipe}, recipe,
                 "the command reads it");
  ASSERT_EQ(millrace_command({"index", set_}).exit_code, 0);
  const fs::path index = set_.string() + ".index";
  expect_refused({"bench", set_, "--batches", "1", "--json", index}, index,
                 "it is the index of a dataset");
  const fs::path config = folder_ / "config.json";
  write_text(config, R"({"format": 1, "options": {"batch_size": 2}})");
  fs::create_hard_link(config, folder_ / "same.json");
  expect_refused(
      {"bench", set_, "--batches", "1", "--config", config, "--html", folder_ / "same.json"},
      folder_ / "same.json", "the command reads it");

  TarFile tar;
  const Bytes image = jpeg(40, 30);
  tar.add("a.jpg", image);
  tar.add("a.cls", "1");
  tar.write(folder_ / "a.tgz");
  expect_refused({"pack", folder_ / "a.tgz", folder_ / "a.tgz", "--force"}, folder_ / "a.tgz",
                 "the command reads it");
  expect_refused({"pack", folder_ / "photos", folder_ / "photos" / "0.jpg", "--force"},
                 folder_ / "photos" / "0.jpg", "the command reads it");
  write_text(folder_ / "list.csv", "0.jpg,1\n1.jpg,2\n");
  const auto by_list = [&](const fs::path& out) {
    return std::vector<std::string>{"pack",    folder_ / "photos", out,
                                    "--force", "--list",           folder_ / "list.csv"};
  };
  expect_refused(by_list(folder_ / "list.csv"), folder_ / "list.csv", "the command reads it");
  expect_refused(by_list(folder_ / "photos" / "1.jpg"), folder_ / "photos" / "1.jpg",
                 "the command reads it");
}

TEST_F(Outputs, AreRegularFiles) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink("/dev/null", folder_ / "null");
  for (const fs::path& output : {folder_.path(), folder_ / "null", pipe}) {
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"verify", set_, "--json", output},
          {"inspect", set_, "--record", "0", "--force", "--out", output},
          {"topology", "--json", output},
          {"pack", folder_ / "photos", output, "--force"}}) {
      const Result result = millrace_command(command);
      EXPECT_EQ(result.exit_code, 1) << command[0] << " " << output;
      EXPECT_THAT(result.err, HasSubstr(output.string())) << command[0];
    }
  }
  const fs::path long_name = folder_ / (std::string(300, 'n') + ".json");
  const Result too_long = millrace_command({"verify", set_, "--json", long_name});
  EXPECT_EQ(too_long.exit_code, 1);
  EXPECT_THAT(too_long.err, HasSubstr(".json: cannot be written: File name too long"));
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_TRUE(fs::is_symlink(folder_ / "null"));
}

TEST_F(Outputs, GoWhereALinkLeads) {
  write_text(folder_ / "real.json", "{}");
  fs::create_symlink("real.json", folder_ / "link.json");
  ASSERT_EQ(millrace_command({"verify", set_, "--json", folder_ / "link.json"}).exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(folder_ / "link.json"));
  EXPECT_THAT(text_of(folder_ / "real.json"), HasSubstr("\"sound\": true"));
}

// With closed standard streams, the dataset's files could get the numbers 0 to 2. Messages would
// then be written into them.
TEST_F(Outputs, ClosedStandardStreamsAreNotTheDataset) {
  const fs::path out = folder_ / "out.lmdb";
  {
    DatasetWriter writer(out,
                         {.commit_bytes = 1, .source = read_raw(set_).description.at("source")});
    for (std::uint64_t record = 0; record < 3; ++record)
      writer.append(open_dataset(set_)->make_reader()->read(record).fields());
  }
  (void)run_program({"/bin/sh", "-c", R"(exec "$0" pack "$1" "$2" --resume <&- >&- 2>&-)",
                     MILLRACE_COMMAND, folder_ / "photos", out});
  const Result verified = millrace_command({"verify", out});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("all 6 records are sound"));
}

}  // namespace
}  // namespace millrace
