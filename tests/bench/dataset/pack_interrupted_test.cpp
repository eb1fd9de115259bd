// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/dataset.h>
#include <millrace/error.h>
#include <millrace/random.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "support/jpeg_samples.h"
#include "support/run_program.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using namespace testing;

// A pack that takes a while: a few images, listed many times.
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
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    const auto committed = [&] {
      return std::filesystem::exists(out_) && std::filesystem::file_size(out_) > 30'000'000;
    };
    while (!committed() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    program.send(signal);
    const RunningProgram::Result result = program.wait();
    EXPECT_EQ(result.exit_code, 130);
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

}  // namespace
}  // namespace millrace
