// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>

#include "support/packs.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace testing;
using Result = RunningProgram::Result;

/// Ten images in three classes.
class ShardedPack : public ::testing::Test {
 protected:
  ShardedPack() {
    for (int image = 0; image < 10; ++image)
      write_jpeg(folder_ / "photos" / ("abc"[image / 4] + std::string()) /
                     (std::to_string(image) + ".jpg"),
                 60 + image * 20, 50);
  }

  /// Names of the files beside the photographs.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      if (entry.is_regular_file()) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

  Result pack_out(std::vector<std::string> more = {}) const {
    return pack(folder_ / "photos", out_, std::move(more));
  }
  nlohmann::json index() const {
    std::ifstream file(out_);
    return nlohmann::json::parse(file);
  }
  std::vector<std::uint64_t> record_counts() const {
    std::vector<std::uint64_t> counts;
    const nlohmann::json parsed = index();
    for (const nlohmann::json& shard : parsed.at("shards")) counts.push_back(shard.at("records"));
    return counts;
  }

  const TemporaryFolder folder_;
  const fs::path out_ = folder_ / "out.lmdb";
};

TEST_F(ShardedPack, OpensAsTheSameDataset) {
  const fs::path whole = folder_ / "whole.lmdb";
  ASSERT_EQ(pack(folder_ / "photos", whole).exit_code, 0);
  for (const std::vector<std::string>& how :
       {std::vector<std::string>{"--shards", "3"}, {"--shard-bytes", "8000"}}) {
    const Result result = pack_out({how[0], how[1], "--force"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, StartsWith("packed 10 records (3 classes, "));
    EXPECT_EQ(all_bytes(out_), all_bytes(whole));
    EXPECT_EQ(open_dataset(out_)->classes(), open_dataset(whole)->classes());
    EXPECT_EQ(index().at("fingerprint"), read_raw(whole).description.at("fingerprint"));
  }
}

TEST_F(ShardedPack, SharesTheImagesOutByNumber) {
  ASSERT_EQ(pack_out({"--shards", "4", "--index", "none"}).exit_code, 0);
  EXPECT_THAT(files(),
              ElementsAre("out-00000-of-00004.lmdb", "out-00001-of-00004.lmdb",
                          "out-00002-of-00004.lmdb", "out-00003-of-00004.lmdb", "out.lmdb"));
  EXPECT_THAT(record_counts(), ElementsAre(3u, 2u, 3u, 2u));
  // Each is a dataset of its own.
  EXPECT_THAT(contents(folder_ / "out-00003-of-00004.lmdb"), ElementsAre("c/8.jpg 2", "c/9.jpg 2"));
  EXPECT_THAT(open_dataset(folder_ / "out-00003-of-00004.lmdb")->classes(),
              ElementsAre("a", "b", "c"));
}

TEST_F(ShardedPack, LeavesOutBadImagesWithoutMovingTheOthers) {
  write_text(folder_ / "photos" / "a" / "0.jpg", "bad");
  write_text(folder_ / "photos" / "c" / "9.jpg", "bad");
  for (const char* name : {"8.jpg", "7.jpg"})
    write_text(folder_ / "photos" / (name[0] == '8' ? "c" : "b") / name, "bad");
  ASSERT_EQ(pack_out({"--shards", "5", "--skip-bad"}).exit_code, 0);
  EXPECT_THAT(record_counts(), ElementsAre(1u, 2u, 2u, 1u, 0u));
  EXPECT_THAT(contents(out_), ElementsAre("a/1.jpg 0", "a/2.jpg 0", "a/3.jpg 0", "b/4.jpg 1",
                                          "b/5.jpg 1", "b/6.jpg 1"));
}

TEST_F(ShardedPack, KeepsFilesBelowTheirBytes) {
  constexpr std::uint64_t limit = 25000;
  ASSERT_EQ(pack_out({"--shard-bytes", "25kB"}).exit_code, 0);
  const nlohmann::json shards = index().at("shards");
  ASSERT_GT(shards.size(), 1u);
  EXPECT_EQ(shards.at(0).at("file"), "out-00000.lmdb");
  for (std::size_t shard = 0; shard < shards.size(); ++shard) {
    const RawFile raw = read_raw(folder_ / shards[shard].at("file").get<std::string>());
    std::uint64_t bytes = 0;
    for (const std::string& value : raw.values) bytes += value.size();
    EXPECT_EQ(raw.description.at("bytes"), bytes);
    EXPECT_LE(bytes, limit);
    if (shard + 1 == shards.size()) continue;
    // The next record would have exceeded the limit.
    const RawFile next = read_raw(folder_ / shards[shard + 1].at("file").get<std::string>());
    EXPECT_GT(bytes + next.values.at(0).size(), limit);
  }
  // A record above the limit gets a file of its own.
  ASSERT_EQ(pack_out({"--shard-bytes", "1", "--force"}).exit_code, 0);
  EXPECT_EQ(record_counts(), std::vector<std::uint64_t>(10, 1));
}

TEST_F(ShardedPack, ReplacesAllThatWasThere) {
  ASSERT_EQ(pack_out({"--shards", "4"}).exit_code, 0);
  EXPECT_THAT(pack_out({"--shards", "4"}).err, HasSubstr("out.lmdb exists; --force replaces it"));
  ASSERT_EQ(pack_out({"--shards", "2", "--force"}).exit_code, 0);
  EXPECT_THAT(files(),
              ElementsAre("out-00000-of-00002.lmdb", "out-00000-of-00002.lmdb.index",
                          "out-00001-of-00002.lmdb", "out-00001-of-00002.lmdb.index", "out.lmdb"));
  ASSERT_EQ(pack_out({"--force"}).exit_code, 0);
  EXPECT_THAT(files(), ElementsAre("out.lmdb", "out.lmdb.index"));
  ASSERT_EQ(pack_out({"--shards", "2", "--force"}).exit_code, 0);
  EXPECT_EQ(open_dataset(out_)->size(), 10u);

  fs::remove(out_);
  const Result in_the_way = pack_out({"--shards", "2"});
  EXPECT_EQ(in_the_way.exit_code, 1);
  EXPECT_THAT(in_the_way.err, HasSubstr("out-00000-of-00002.lmdb exists already"));
  EXPECT_FALSE(fs::exists(out_));
}

TEST_F(ShardedPack, IsResumedInTheSameShardsOnly) {
  ASSERT_EQ(pack_out({"--shards", "4"}).exit_code, 0);
  const Result again = pack_out({"--shards", "4", "--resume"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("is complete already, with 10 records (3 classes)"));
  EXPECT_THAT(pack_out({"--shards", "3", "--resume"}).err,
              HasSubstr("begun from \"4 shards\", and this is \"3 shards\""));
  EXPECT_THAT(pack_out({"--resume"}).err,
              HasSubstr("was begun in shards, and this is to be one file"));
}

TEST_F(ShardedPack, PassesOverItsOwnShardsAmongTheImages) {
  const fs::path out = folder_ / "photos" / "out.lmdb";
  ASSERT_EQ(pack(folder_ / "photos", out, {"--shards", "2"}).exit_code, 0);
  fs::copy_file(folder_ / "photos" / "out-00000-of-00002.lmdb", folder_ / "a shard");
  EXPECT_THAT(pack(folder_ / "photos", out, {"--shards", "2", "--resume"}).out,
              HasSubstr("is complete already, with 10 records"));
  const Result again = pack(folder_ / "photos", out, {"--shards", "2", "--force"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  for (const char* other : {"out-2.lmdb", "out-00000-of-00002.mdb", "out-00000-of-00002x.lmdb"}) {
    fs::copy_file(folder_ / "a shard", folder_ / "photos" / other);
    const Result with_other = pack(folder_ / "photos", out, {"--shards", "2", "--force"});
    EXPECT_EQ(with_other.exit_code, 1);
    EXPECT_THAT(with_other.err, HasSubstr(other)) << "no shard of its own is passed over";
    fs::remove(folder_ / "photos" / other);
  }
}

// The list of shards is JSON, which cannot hold such names.
TEST_F(ShardedPack, TakesNamesThatAreNoText) {
  const fs::path folder = folder_ / "s\xe4\n\x1b[2J";
  fs::create_directory(folder);
  const fs::path input = folder / "ph\xf6tos";
  fs::rename(folder_ / "photos", input);
  fs::rename(input / "a", input / "\xff");
  const fs::path out = folder / "tr\xe4in.lmdb";
  ASSERT_EQ(pack(input, out, {"--shards", "3"}).exit_code, 0);
  EXPECT_EQ(open_dataset(out)->size(), 10u);
  EXPECT_EQ(pack(input, out, {"--shards", "3", "--resume"}).exit_code, 0);
  ASSERT_EQ(pack(input, out, {"--shards", "2", "--force"}).exit_code, 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 6) << "old shards are left";

  const std::vector<std::vector<std::string>> commands = {
      {"inspect", out},
      {"inspect", out, "--record", "8"},
      {"verify", out},
      {"bench", out, "--batches", "1", "--batch-size", "1", "--warmup", "0"},
      {"tune", out, "--batch-size", "1", "--budget-s", "0.1", "--accept-noise"},
      {"diagnose", out, "--batch-size", "1", "--batches", "1", "--rounds", "2", "--step-ms", "1"}};
  const auto has_no_controls = [](const std::string& text) {
    return std::ranges::none_of(text, [](char letter) {
      return (letter >= 0 && letter < ' ' && letter != '\n') || letter == 0x7F;
    });
  };
  for (std::vector<std::string> command : commands) {
    const Result shown = millrace_command(command);
    EXPECT_EQ(shown.exit_code, 0) << command[0] << ": " << shown.err;
    EXPECT_TRUE(has_no_controls(shown.out + shown.err)) << command[0];
    EXPECT_THAT(shown.out, HasSubstr("/s\\xe4\\x0a\\x1b[2J/tr\\xe4in.lmdb")) << command[0];
    EXPECT_TRUE(nlohmann::json(shown.out).dump().size() > 0) << "is UTF-8";
    const fs::path json = folder / (command[0] + "\xe9.json");
    command.insert(command.end(), {"--json", json});
    EXPECT_EQ(millrace_command(command).exit_code, 0) << command[0];
    EXPECT_TRUE(nlohmann::json::parse(std::ifstream(json)).is_object()) << command[0];
  }
  const Result missing = millrace_command({"verify", folder / "none"});
  EXPECT_TRUE(has_no_controls(missing.err)) << missing.err;
  EXPECT_THAT(missing.err, HasSubstr("/s\\xe4\\x0a\\x1b[2J/none does not exist"));
}

TEST_F(ShardedPack, SaysWhatIsWrongWithItsArguments) {
  EXPECT_THAT(pack_out({"--shards", "11"}).err,
              HasSubstr("--shards 11 is more than there are images (10)"));
  EXPECT_FALSE(fs::exists(out_));
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--shards", "2", "--shard-bytes", "1MB"},
        {"--shards", "0"},
        {"--shards", "100000"},
        {"--shard-bytes", "0"},
        {"--shard-bytes", "many"},
        {"--commit-bytes", "0"}}) {
    const Result result = pack_out(wrong);
    EXPECT_EQ(result.exit_code, 2) << wrong[0] << " " << wrong[1];
    EXPECT_THAT(result.err, HasSubstr("See millrace pack --help"));
  }
}

TEST_F(ShardedPack, IsMeasuredAsAnyOther) {
  const auto digest = [&](const fs::path& dataset) {
    const Result result =
        millrace_command({"bench", dataset, "--batches", "3", "--warmup", "0", "--batch-size", "4",
                          "--size", "16", "--digest", "--json", "-"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out).at("digest").get<std::string>();
  };
  ASSERT_EQ(pack_out({"--shards", "4"}).exit_code, 0);
  ASSERT_EQ(pack(folder_ / "photos", folder_ / "whole.lmdb").exit_code, 0);
  EXPECT_EQ(digest(out_), digest(folder_ / "whole.lmdb"));
}

}  // namespace
}  // namespace millrace
