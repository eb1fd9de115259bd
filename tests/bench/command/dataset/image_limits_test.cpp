// SPDX-License-Identifier: Apache-2.0
//
// Limits for decoding images in a command, and their options.
#include <gmock/gmock.h>

#include "support/jpeg_bombs.h"
#include "support/packs.h"
#include "support/pictures.h"
#include "support/sanitizers.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace testing;
using Result = RunningProgram::Result;

Result verify_with(const fs::path& dataset, std::vector<std::string> more) {
  more.insert(more.begin(), {"verify", dataset.string()});
  return millrace_command(std::move(more));
}

// 300 MB each; 2.4 GB if all were read at once.
TEST(ImageLimits, LargeImagesShareTheirMemory) {
  const TemporaryFolder folder;
  const std::vector<Bytes> large(8,
                                 hollow_jpeg({.width = 8000, .height = 6250, .padding = 50'000}));
  write_pictures(folder / "large.lmdb", large);
  const Result result = verify_with(folder / "large.lmdb", {"--workers", "8"});
  EXPECT_EQ(result.exit_code, 0) << result.out;
#if !defined(MILLRACE_ASAN) && !defined(MILLRACE_TSAN)
  EXPECT_LT(result.peak_bytes, 600'000'000U);
#endif
}

#if !defined(MILLRACE_ASAN) && !defined(MILLRACE_TSAN)
// Unlike a bad image, which could be left out.
TEST(ImageLimits, WithoutMemoryTheRunEnds) {
  const TemporaryFolder folder;
  const std::vector<Bytes> large = {
      hollow_jpeg({.width = 8000, .height = 6250, .padding = 50'000})};
  write_pictures(folder / "large.lmdb", large);
  const Result result =
      run_program({"/bin/sh", "-c", "ulimit -v 350000; exec \"$0\" verify \"$1\" --workers 1",
                   MILLRACE_COMMAND, folder / "large.lmdb"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, StartsWith("millrace: "));
}
#endif

TEST(ImageLimits, ImagesBeyondALimitAreBadAndOptionsRaiseIt) {
  const TemporaryFolder folder;
  const std::vector<Bytes> bombs = {hollow_jpeg({}), hollow_jpeg({.scans = 199}),
                                    hollow_jpeg({.padding = 100'000})};
  write_pictures(folder / "bombs.lmdb", bombs);
  const Result result = verify_with(folder / "bombs.lmdb", {"--workers", "8"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, AllOf(HasSubstr("in 106 bytes; at most 1000 pixels per byte"),
                                HasSubstr("in 2086 bytes; at most 1000 pixels per byte"),
                                HasSubstr("at most 536870912 are taken (max_decode_bytes)")));
#if !defined(MILLRACE_ASAN) && !defined(MILLRACE_TSAN)
  EXPECT_LT(result.peak_bytes, 100'000'000U);
#endif
  const std::vector<Bytes> small = {hollow_jpeg({.width = 400, .height = 300, .scans = 9})};
  write_pictures(folder / "small.lmdb", small);
  for (const char* option : {"--max-pixels", "--max-pixels-per-byte", "--max-scan-pixels"}) {
    EXPECT_EQ(verify_with(folder / "small.lmdb", {option, "10"}).exit_code, 1) << option;
    EXPECT_EQ(verify_with(folder / "small.lmdb", {option, "1080000"}).exit_code, 0) << option;
    EXPECT_EQ(verify_with(folder / "small.lmdb", {option, "0"}).exit_code, 2) << option;
  }
  const std::vector<Bytes> large = {
      hollow_jpeg({.width = 3000, .height = 2400, .padding = 10'000})};
  write_pictures(folder / "large.lmdb", large);
  EXPECT_EQ(verify_with(folder / "large.lmdb", {"--max-decode-bytes", "64MB"}).exit_code, 1);
  EXPECT_EQ(verify_with(folder / "large.lmdb", {"--max-decode-bytes", "65MB"}).exit_code, 0);
}

TEST(ImageLimits, PackLeavesOutWhatIsBeyondThem) {
  const TemporaryFolder folder;
  write_bytes(folder / "in/bomb.jpg", hollow_jpeg({}));
  write_jpeg(folder / "in/sound.jpg");
  const Result result = pack(folder / "in", folder / "out.lmdb", {"--skip-bad"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("bomb.jpg: 10000 x 10000 pixels in 106 bytes; at most 1000"));
  EXPECT_EQ(pack(folder / "in", folder / "all.lmdb",
                 {"--max-pixels-per-byte", "1000000", "--max-decode-bytes", "1GB"})
                .exit_code,
            0);
}

TEST(ImageLimits, BenchTakesThem) {
  const TemporaryFolder folder;
  write_pictures(folder / "a.lmdb", pictures(4, 60, 40));
  const auto bench = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"bench", folder / "a.lmdb", "--batch-size", "4", "--batches", "1",
                               "--warmup", "0", "--workers", "1"});
    return millrace_command(std::move(more));
  };
  EXPECT_EQ(bench({}).exit_code, 0);
  const Result result = bench({"--max-scan-pixels", "2399"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("at most 2399 pixels of all scans are decoded"));
}

}  // namespace
}  // namespace millrace
