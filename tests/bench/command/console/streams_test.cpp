// SPDX-License-Identifier: Apache-2.0
// Failures of standard output and standard error, for every command.
#include <gmock/gmock.h>

#include "support/packs.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using namespace testing;
using Result = RunningProgram::Result;

class Streams : public ::testing::Test {
 protected:
  Streams() {
    for (int image = 0; image < 4; ++image)
      write_jpeg(folder_ / "photos" / (std::to_string(image) + ".jpg"), 60 + image * 20, 50);
    EXPECT_EQ(pack(folder_ / "photos", set_).exit_code, 0);
  }

  /// Each command in shell syntax: the program is $0, a dataset $1, a folder of images $2.
  static std::vector<std::string> commands() {
    return {"--help",
            "--version",
            "bench --help",
            "topology",
            "recipe train",
            "view \"$1\" --record 0 --samples 1 --png -",
            "decode \"$2/0.jpg\"",
            "decode \"$2/0.jpg\" --raw -",
            "topology --json -",
            "inspect \"$1\"",
            "inspect \"$1\" --json -",
            "inspect \"$1\" --record 0",
            "inspect \"$1\" --record 0 --out -",
            "verify \"$1\"",
            "verify \"$1\" --json -",
            "pack \"$2\" \"$2.lmdb\" --force",
            "bench \"$1\" --batches 1 --batch-size 1 --warmup 0",
            "bench \"$1\" --batches 1 --batch-size 1 --warmup 0 --json -",
            "tune \"$1\" --batch-size 1 --budget-s 0.1 --accept-noise",
            "diagnose \"$1\" --batch-size 1 --batches 1 --rounds 2 --step-ms 0.1"};
  }
  Result in_shell(const std::string& line) const {
    return run_program({"/bin/bash", "-c", line, MILLRACE_COMMAND, set_, folder_ / "photos"});
  }

  const TemporaryFolder folder_;
  const std::filesystem::path set_ = folder_ / "set.lmdb";
};

TEST_F(Streams, AnOutputThatCannotBeWrittenIsAnError) {
  for (const std::string& command : commands())
    for (const char* out : {" > /dev/full", " >&-", " | true; exit ${PIPESTATUS[0]}"}) {
      const Result result = in_shell("sleep 0.01; \"$0\" " + command + out);
      // The pipe may be closed after everything is written.
      if (out[1] == '|' && result.exit_code == 0) continue;
      EXPECT_EQ(result.exit_code, 1) << command << out;
      EXPECT_THAT(result.err, HasSubstr("millrace: standard output: cannot be written: "))
          << command << out;
    }
}

TEST_F(Streams, APipeThatIsClosedIsNoSignal) {
  const Result result = in_shell(  // a pipe without a reader
      "mkfifo \"$1.fifo\"; exec 3<>\"$1.fifo\" 4>\"$1.fifo\" 3<&-; "
      "\"$0\" topology >&4; echo $? >&2");
  EXPECT_THAT(result.err, HasSubstr("standard output: cannot be written: Broken pipe\n1\n"));
}

TEST_F(Streams, WhereNobodyCanBeToldTheResultStays) {
  for (const std::string& command : commands())
    for (const char* err : {" 2> /dev/full", " 2>&-"}) {
      EXPECT_EQ(in_shell("\"$0\" " + command + err).exit_code, 0) << command << err;
      EXPECT_EQ(in_shell("\"$0\" verify \"$1.none\"" + std::string(err)).exit_code, 1) << err;
    }
}

TEST_F(Streams, AResultGoesIntoItsFileWithoutThem) {
  const std::string bench = "\"$0\" bench \"$1\" --batches 1 --batch-size 1 --warmup 0 --json ";
  EXPECT_EQ(in_shell(bench + "\"$2.json\" > /dev/full").exit_code, 1);
  EXPECT_EQ(nlohmann::json::parse(std::ifstream(folder_ / "photos.json")).at("batches"), 1);
}

}  // namespace
}  // namespace millrace
