// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/random.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <csignal>
#include <thread>

#include "support/packs.h"
#include "support/tars.h"
#include "support/temporary_folder.h"
#include "support/waiting.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace testing;
using Result = RunningProgram::Result;

constexpr const char* commit_bytes = "100KB";

/// Options for reading and writing a pack.
struct Way {
  const char* name;
  bool tar = false;
  std::vector<std::string> arguments = {};
};

void PrintTo(const Way& way, std::ostream* stream) { *stream << way.name; }

/// A pack of several hundred small images, some of them bad, and the records of an undisturbed
/// pack.
class ResumedPack : public ::testing::TestWithParam<Way> {
 protected:
  static constexpr int images = 300;
  static constexpr int bad_images = images / 25;

  ResumedPack() {
    for (unsigned image = 0; image < 5; ++image)
      write_bytes(folder_ / "photos" / std::to_string(image),
                  encode(noise(160, 120, image), {.quality = 95}));
    TarFile tar;
    std::string list;
    for (int image = 0; image < images; ++image) {
      const bool bad = image % 25 == 3;
      const std::string label = std::to_string(image % 7);
      list += (bad ? "missing" : std::to_string(image % 5)) + "," + label + "\n";
      tar.add(std::to_string(image) + ".jpg",
              bad ? Bytes(9) : read_file(folder_ / "photos" / std::to_string(image % 5)));
      tar.add(std::to_string(image) + ".cls", label);
    }
    write_text(folder_ / "list.csv", list);
    tar.write(folder_ / "samples.tar");
  }

  std::vector<std::string> command(const fs::path& out, const Way& way,
                                   std::vector<std::string> more = {}) const {
    std::vector<std::string> all = {MILLRACE_COMMAND, "pack",
                                    folder_ / (way.tar ? "samples.tar" : "photos"), out};
    if (!way.tar) all.insert(all.end(), {"--list", folder_ / "list.csv"});
    all.insert(all.end(), {"--commit-bytes", commit_bytes, "--skip-bad"});
    all.insert(all.end(), way.arguments.begin(), way.arguments.end());
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  /// Packs without interruption; keeps the records and the time.
  void pack_undisturbed(const Way& way) {
    const Stopwatch stopwatch;
    const Result result = run_program(command(folder_ / "whole.lmdb", way));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    left_out_ = result.err.substr(result.err.find("left out"));
    time_ = stopwatch.elapsed();
    whole_ = all_bytes(folder_ / "whole.lmdb");
    ASSERT_EQ(whole_.size(), static_cast<std::size_t>(images - bad_images));
  }

  /// Expects that the committed records are a prefix of those of an undisturbed pack, and all of
  /// them in a complete dataset. The index is made after the last commit. Returns the number of
  /// records.
  std::size_t expect_committed(const fs::path& out) const {
    const RawFile raw = read_raw(out);
    if (raw.description.is_null()) return 0;
    EXPECT_EQ(raw.description.at("records").get<std::size_t>(), raw.values.size());
    const RawFile whole = read_raw(folder_ / "whole.lmdb");
    EXPECT_LE(raw.values.size(), whole.values.size());
    if (raw.description.at("complete").get<bool>()) {
      EXPECT_EQ(raw.values, whole.values);
    }
    EXPECT_TRUE(std::equal(raw.values.begin(), raw.values.end(), whole.values.begin()));
    return raw.values.size();
  }

  void expect_resumed(const fs::path& out, const Way& way) const {
    const Result result = run_program(command(out, way, {"--resume"}));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr(left_out_));
    EXPECT_THAT(result.out, HasSubstr(std::to_string(images - bad_images) + " records (7 classes"));
    EXPECT_EQ(all_bytes(out), whole_);
    if (way.arguments.empty()) {
      const RawFile raw = read_raw(out), whole = read_raw(folder_ / "whole.lmdb");
      EXPECT_EQ(raw.description, whole.description);
      EXPECT_EQ(raw.values, whole.values);
    } else {
      EXPECT_EQ(index_without_names(out), index_without_names(folder_ / "whole.lmdb"));
    }
  }

  static nlohmann::json index_without_names(const fs::path& out) {
    std::ifstream file(out);
    nlohmann::json index = nlohmann::json::parse(file);
    for (nlohmann::json& shard : index.at("shards")) shard.erase("file");
    return index;
  }

  const TemporaryFolder folder_;
  const fs::path out_ = folder_ / "out.lmdb";
  std::vector<std::string> whole_;
  std::string left_out_;
  std::chrono::nanoseconds time_{};
};

// --gtest_repeat tests more moments.
TEST_P(ResumedPack, KilledAtAnyMomentGoesOnToTheSameRecords) {
  constexpr int kills = 3;
  static std::uint64_t run = 0;
  Random random(77, run++);
  SCOPED_TRACE("kills of Random(77, " + std::to_string(run - 1) + ")");
  ASSERT_NO_FATAL_FAILURE(pack_undisturbed(GetParam()));
  for (int kill = 0; kill < kills; ++kill) {
    const fs::path out = folder_ / ("killed" + std::to_string(kill) + ".lmdb");
    // Twice, so that a resumed pack is killed, too.
    for (int life = 0; life < 2; ++life) {
      RunningProgram program(command(out, GetParam(), {"--resume"}));
      std::this_thread::sleep_for(
          std::chrono::nanoseconds(random.below(static_cast<std::uint32_t>(time_.count() / 2000))) *
          1000);
      program.send(SIGKILL);
      const Result result = program.wait();
      if (result.signal != SIGKILL) continue;
      if (GetParam().arguments.empty()) expect_committed(out);
      const std::optional<ErrorCode> refused = refusal(out);
      ASSERT_TRUE(!refused || refused == ErrorCode::incomplete ||
                  (refused == ErrorCode::not_found && !fs::exists(out)));
      if (!refused) {
        EXPECT_EQ(all_bytes(out), whole_);
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_resumed(out, GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, ResumedPack,
                         ::testing::Values(Way{"List"}, Way{"Tar", true},
                                           Way{"ThreeShards", false, {"--shards", "3"}},
                                           Way{"ShardsByBytes", true, {"--shard-bytes", "700KB"}}),
                         [](const auto& parameter) { return std::string(parameter.param.name); });

/// Tests that need only the data.
class ResumePack : public ResumedPack {
 protected:
  /// Packs with a limit of the file size that is too small.
  Result pack_in_part() const {
    rlimit before{};
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    rlimit small = before;
    small.rlim_cur = 1'000'000;
    const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    RunningProgram program(command(out_, {}));
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, old_handler);
    return program.wait();
  }
};

TEST_F(ResumePack, BeginsWhereNothingWasWrittenAndLeavesACompleteDatasetAlone) {
  ASSERT_NO_FATAL_FAILURE(pack_undisturbed({}));
  ASSERT_NO_FATAL_FAILURE(expect_resumed(out_, {}));
  const auto written = fs::last_write_time(out_);
  const Result again = run_program(command(out_, {}, {"--resume"}));
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_EQ(again.out, out_.string() + " is complete already, with 288 records (7 classes)\n");
  EXPECT_THAT(again.err, HasSubstr(left_out_));
  EXPECT_EQ(fs::last_write_time(out_), written);
  // An empty file.
  write_text(out_, "");
  ASSERT_NO_FATAL_FAILURE(expect_resumed(out_, {}));
}

TEST_F(ResumePack, RefusesWhatIsNotTheSamePack) {
  ASSERT_NO_FATAL_FAILURE(pack_undisturbed({}));
  ASSERT_EQ(pack_in_part().exit_code, 1);
  const std::string before = read_raw(out_).description.dump();
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& why) {
    const Result result = millrace_command(arguments);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, StartsWith("millrace: " + out_.string() + " cannot be resumed: "));
    EXPECT_THAT(result.err, HasSubstr(why));
    EXPECT_EQ(read_raw(out_).description.dump(), before);
  };
  const std::string list = folder_ / "list.csv";
  refused({"pack", folder_ / "photos", out_, "--resume"}, "by a list: 300 images, listing ");
  refused({"pack", folder_ / "samples.tar", out_, "--resume"}, "samples.tar: 300 images, listing ");
  refused({"pack", folder_ / "photos", out_, "--list", list, "--shards", "2", "--resume"},
          "it is one file, and this is to be 2 shards");
  fs::copy(folder_ / "photos", folder_ / "others");
  refused({"pack", folder_ / "others", out_, "--list", list, "--resume"}, "/others by a list");
  std::ofstream(list, std::ios::app) << "0,1\n";
  refused({"pack", folder_ / "photos", out_, "--list", list, "--resume"}, "301 images, listing ");
  const Result not_resumed = pack(folder_ / "photos", out_, {"--list", list});
  EXPECT_EQ(not_resumed.exit_code, 1);
  EXPECT_THAT(not_resumed.err,
              HasSubstr("incomplete; --resume goes on with it, --force replaces it"));

  write_text(out_, "no dataset");
  EXPECT_THAT(pack(folder_ / "photos", out_, {"--resume"}).err, HasSubstr("not an LMDB file"));
  EXPECT_EQ(fs::file_size(out_), 10u);
  EXPECT_EQ(pack(folder_ / "photos", out_, {"--resume", "--force"}).exit_code, 2);
}

TEST_F(ResumePack, LetsNoSecondPackIn) {
  ASSERT_NO_FATAL_FAILURE(pack_undisturbed({}));
  // On a busy machine the first pack may end before it is stopped.
  for (int attempt = 0; attempt < 20; ++attempt) {
    RunningProgram first(command(out_, {}));
    ASSERT_TRUE(eventually([&] {
      std::error_code missing;
      const std::uintmax_t bytes = fs::file_size(out_, missing);
      return !missing && bytes > 100'000;
    }));
    first.send(SIGSTOP);
    const Result second = run_program(command(out_, {}, {"--resume"}));
    first.send(SIGCONT);
    EXPECT_EQ(first.wait().exit_code, 0);
    EXPECT_EQ(all_bytes(out_), whole_);
    fs::remove(out_);
    if (second.out.find("is complete already") != std::string::npos) continue;
    EXPECT_THAT(second.err, HasSubstr("is being written by another writer"));
    return;
  }
  FAIL() << "the first was done before each second";
}

TEST_F(ResumePack, GoesOnWhenTheFileMayGrowAgain) {
  ASSERT_NO_FATAL_FAILURE(pack_undisturbed({}));
  const Result result = pack_in_part();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, StartsWith("millrace: " + out_.string() + " cannot be written: "));
  const std::size_t committed = expect_committed(out_);
  EXPECT_GT(committed, 0u);
  EXPECT_THAT(result.err,
              HasSubstr(std::to_string(committed) + " records are committed and stay in it"));
  EXPECT_THAT(result.err, HasSubstr("`millrace pack --resume`"));
  EXPECT_EQ(refusal(out_), ErrorCode::incomplete);
  expect_resumed(out_, {});
}

struct SmallDisk {
  explicit SmallDisk(const fs::path& folder, const char* size) : path(folder) {
    fs::create_directory(path);
    mounted = mount("millrace-test", path.c_str(), "tmpfs", 0, size) == 0;
  }
  ~SmallDisk() {
    if (mounted) umount(path.c_str());
  }
  bool grow() const {
    return mount("millrace-test", path.c_str(), "tmpfs", MS_REMOUNT, "size=50m") == 0;
  }
  fs::path path;
  bool mounted;
};

TEST_F(ResumePack, GoesOnWhenThereIsRoomOnTheDiskAgain) {
  const SmallDisk disk(folder_ / "disk", "size=1500k");
  if (!disk.mounted) GTEST_SKIP() << "may not mount a small file system";
  for (const Way& way : {Way{}, Way{"Shards", true, {"--shards", "5"}}}) {
    fs::remove(folder_ / "whole.lmdb");
    ASSERT_NO_FATAL_FAILURE(pack_undisturbed(way));
    const fs::path out = disk.path / (way.tar ? "shards.lmdb" : "one.lmdb");
    const Result result = run_program(command(out, way));
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, ContainsRegex("No space left on device.* records are committed and "
                                          "stay in it.*make room and resume it"));
    EXPECT_EQ(refusal(out), ErrorCode::incomplete);
    // The disk is still full.
    const Result again = run_program(command(out, way, {"--resume"}));
    EXPECT_EQ(again.exit_code, 1);
    EXPECT_THAT(again.err, ContainsRegex("No space left on device.*make room and resume it"));
    EXPECT_EQ(refusal(out), ErrorCode::incomplete);
    ASSERT_TRUE(disk.grow());
    ASSERT_NO_FATAL_FAILURE(expect_resumed(out, way));
    for (const auto& entry : fs::directory_iterator(disk.path)) fs::remove(entry);
    ASSERT_EQ(mount("millrace-test", disk.path.c_str(), "tmpfs", MS_REMOUNT, "size=1500k"), 0);
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      if (entry.path().filename().string().starts_with("whole")) fs::remove(entry);
  }
}

}  // namespace
}  // namespace millrace
