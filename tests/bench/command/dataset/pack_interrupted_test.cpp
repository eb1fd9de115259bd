// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <millrace/dataset.h>
#include <millrace/error.h>
#include <millrace/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "support/jpeg_samples.h"
#include "support/run_program.h"
#include "support/sanitizers.h"
#include "support/temporary_folder.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using namespace testing;

// A slow pack: a few images, listed many times.
class InterruptedPack : public ::testing::Test {
 protected:
  InterruptedPack() {
    std::filesystem::create_directory(folder_ / "photos");
    std::ofstream list(folder_ / "list.csv");
    for (unsigned image = 0; image < 4; ++image) {
      const Bytes bytes = encode(noise(600, 400, image), {.quality = 95});
      std::ofstream file(folder_ / "photos" / std::to_string(image), std::ios::binary);
      file.write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
    }
    for (unsigned line = 0; line < lines; ++line) list << line % 4 << "," << line << "\n";
  }

  std::vector<std::string> command() const {
    return {MILLRACE_COMMAND,     "pack",   folder_ / "photos", out_, "--list",
            folder_ / "list.csv", "--force"};
  }

  /// Returns the size of a file, or 0 if it does not exist. A single system call: pack first
  /// creates its file as a test, and removes it again.
  static std::uintmax_t size_of(const std::filesystem::path& path) {
    std::error_code missing;
    const std::uintmax_t bytes = std::filesystem::file_size(path, missing);
    return missing ? 0 : bytes;
  }

  static constexpr unsigned lines = 20000;
  TemporaryFolder folder_;
  std::filesystem::path out_ = folder_ / "out.lmdb";
};

TEST_F(InterruptedPack, KilledAtAnyMomentIsRefusedAsIncomplete) {
  Random random(2024, 0);
  int refused = 0;
  for (int round = 0; round < 12; ++round) {
    std::filesystem::remove(out_);
    RunningProgram program(command());
    // A slow machine may take long to begin.
    if (round >= 6) {
      ASSERT_TRUE(eventually([&] { return size_of(out_) > 0; }));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(random.below(round < 6 ? 60 : 900)));
    program.send(SIGKILL);
    ASSERT_EQ(program.wait().signal, SIGKILL);
    try {
      (void)open_dataset(out_);
      ADD_FAILURE() << "an interrupted pack was opened";
    } catch (const Error& error) {
      refused += error.code() == ErrorCode::incomplete ? 1 : 0;
      EXPECT_EQ(error.code(),
                std::filesystem::exists(out_) ? ErrorCode::incomplete : ErrorCode::not_found)
          << error.what();
    }
  }
  EXPECT_GT(refused, 0);
}

TEST_F(InterruptedPack, StopsInOrderWhenAsked) {
  for (const int signal : {SIGINT, SIGTERM}) {
    RunningProgram program(command());
    EXPECT_TRUE(eventually([&] { return size_of(out_) > 30'000'000; }, 3 * patience));
    program.send(signal);
    const RunningProgram::Result result = program.wait();
    EXPECT_EQ(result.exit_code, signal == SIGINT ? 130 : 143) << result.err;
    EXPECT_THAT(result.err,
                ContainsRegex("interrupted; [1-9][0-9]* of 20000 files are committed to"));
    EXPECT_THAT(result.err, HasSubstr("incomplete"));
    try {
      (void)open_dataset(out_);
      ADD_FAILURE() << "an interrupted pack was opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::incomplete);
    }
    std::filesystem::remove(out_);
  }
}

// A list that never ends stands for a folder that takes long to list.
TEST_F(InterruptedPack, EndsAtOnceWhileItsInputIsListed) {
  ASSERT_EQ(mkfifo((folder_ / "never").c_str(), 0600), 0);
  for (const int signal : {SIGINT, SIGTERM}) {
    RunningProgram program(
        {MILLRACE_COMMAND, "pack", folder_ / "photos", out_, "--list", folder_ / "never"});
    int list = -1;  // can be opened without a wait once the program has opened it
    ASSERT_TRUE(eventually(
        [&] { return (list = open((folder_ / "never").c_str(), O_WRONLY | O_NONBLOCK)) >= 0; }));
    program.send(signal);
    EXPECT_TRUE(eventually([&] { return program.ended(); }));
    program.send(SIGKILL);  // no effect on a process that has ended
    EXPECT_EQ(program.wait().signal, signal);
    close(list);
    EXPECT_FALSE(std::filesystem::exists(out_));
  }
}

/// Packs of so few files that some end before they are killed.
class KilledReplacement : public InterruptedPack {
 protected:
  std::vector<std::string> command(unsigned count, const std::vector<std::string>& more) const {
    std::ofstream list(folder_ / "few.csv");
    for (unsigned line = 0; line < count; ++line) list << line % 4 << "," << line << "\n";
    std::vector<std::string> all = {
        MILLRACE_COMMAND, "pack", folder_ / "photos", out_, "--list", folder_ / "few.csv",
        "--commit-bytes", "1MB"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static Error error_of(const std::filesystem::path& path) {
    try {
      return Error(ErrorCode::internal, std::to_string(open_dataset(path)->size()) + " records");
    } catch (const Error& error) {
      return error;
    }
  }
};

TEST_F(KilledReplacement, LeavesTheOldDatasetOrTheNewOne) {
  Random random(7, 0);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(run_program(command(60, {})).exit_code, 0);
  auto time_us = std::chrono::duration_cast<std::chrono::microseconds>(
                     std::chrono::steady_clock::now() - start)
                     .count();
  int old_ones = 0;
  // Options of the old pack and of the new one.
  const std::vector<std::string> whole, three = {"--shards", "3"}, small = {"--shard-bytes", "3MB"};
  for (const auto& [before, after] : {std::pair{whole, whole},
                                      {whole, three},
                                      {three, three},
                                      {three, small},
                                      {small, small},
                                      {three, whole}}) {
    const auto with = [](std::vector<std::string> way, const char* flag) {
      way.emplace_back(flag);
      return way;
    };
    for (int round = 0; round < (testing::one_in > 1 ? 2 : 6); ++round) {
      ASSERT_EQ(run_program(command(10, with(before, "--force"))).exit_code, 0);
      RunningProgram program(command(60, with(after, "--force")));
      std::this_thread::sleep_for(
          std::chrono::microseconds(random.below(static_cast<std::uint64_t>(time_us))));
      program.send(SIGKILL);
      const bool ended = program.wait().exit_code == 0;
      if (ended) time_us -= time_us / 4;  // the first pack was slower
      const std::string found = error_of(out_).what();
      ASSERT_TRUE(found == "60 records" || (!ended && found == "10 records")) << found;
      old_ones += found == "10 records" ? 1 : 0;
      // In every second round, resumes the interrupted pack, despite the old dataset.
      if (round % 2 == 0) continue;
      const RunningProgram::Result resumed = run_program(command(60, with(after, "--resume")));
      if (resumed.exit_code == 0) {
        EXPECT_EQ(std::string(error_of(out_).what()), "60 records");
      } else {
        // It was killed before it had created a file.
        EXPECT_THAT(resumed.err, HasSubstr("cannot be resumed"));
        EXPECT_EQ(std::string(error_of(out_).what()), "10 records");
      }
    }
  }
  EXPECT_GT(old_ones, 0);
}

TEST_F(KilledReplacement, IsRemovedByTheNextOne) {
  const std::filesystem::path beside = out_.string() + ".replacement";
  ASSERT_EQ(run_program(command(10, {"--shards", "3", "--force"})).exit_code, 0);
  std::vector<std::string> killed = InterruptedPack::command();
  killed.insert(killed.end(), {"--shards", "3"});
  RunningProgram program(killed);
  EXPECT_TRUE(eventually([&] { return std::filesystem::exists(beside); }));
  program.send(SIGKILL);
  ASSERT_EQ(program.wait().signal, SIGKILL);
  EXPECT_EQ(std::string(error_of(out_).what()), "10 records");
  EXPECT_EQ(error_of(beside).code(), ErrorCode::incomplete);
  ASSERT_EQ(run_program(command(10, {"--force"})).exit_code, 0);
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    if (entry.path().filename().string().starts_with("out")) left.push_back(entry.path());
  EXPECT_THAT(left, ::testing::UnorderedElementsAre(out_.string(), out_.string() + ".index"));
}

}  // namespace
}  // namespace millrace
