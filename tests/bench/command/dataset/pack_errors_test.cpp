// SPDX-License-Identifier: Apache-2.0
//
// System errors while images are read: they must not make an image a bad one.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/packs.h"
#include "support/sanitizers.h"
#include "support/tars.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing;
using Result = RunningProgram::Result;
using Words = std::vector<std::string>;

/// Runs a command with this limit of open files.
Result with_files(int files, const Words& command) {
  Words all = {"/bin/sh", "-c", "ulimit -n " + std::to_string(files) + "; exec \"$0\" \"$@\""};
  all.insert(all.end(), command.begin(), command.end());
  return run_program(all);
}

class PackErrors : public ::testing::Test {
 protected:
  static constexpr std::size_t images = 40;

  PackErrors() {
    TarFile tar;
    for (int image = 0; image < static_cast<int>(images); ++image) {
      const std::string name = std::to_string(image % 3) + "/" + std::to_string(image) + ".jpg";
      const Bytes encoded = jpeg(240 + image, 200);
      write_bytes(folder_ / "photos" / name, encoded);
      tar.add(name, encoded);
      tar.add(name.substr(0, name.size() - 3) + "cls", std::to_string(image % 3));
    }
    write_text(folder_ / "photos" / "1" / "notes.txt", "no image");
    tar.write(folder_ / "samples.tar");
  }

  Words command(const fs::path& input, const fs::path& out, const Words& more = {}) const {
    Words all = {MILLRACE_COMMAND, "pack", input, out, "--skip-bad", "--commit-bytes", "4KB"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  /// Expects that a pack fails with this message, and resumes to this many records after `mend`.
  template <typename Mend>
  void expect_error(const Words& words, const std::string& message, std::size_t records,
                    const Mend& mend) const {
    const Result result = run_program(words);
    EXPECT_EQ(result.exit_code, 1) << result.out;
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_NE(refusal(folder_ / "out.lmdb"), std::nullopt);
    mend();
    const Result resumed =
        run_program(command(folder_ / "photos", folder_ / "out.lmdb", {"--resume"}));
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_THAT(resumed.err, HasSubstr("left out 1 file:\n  1/notes.txt: "));
    EXPECT_EQ(contents(folder_ / "out.lmdb").size(), records);
  }

  const TemporaryFolder folder_;
};

TEST_F(PackErrors, TooFewOpenFilesLeaveNoImageOut) {
#ifdef MILLRACE_ASAN
  GTEST_SKIP() << "the sanitizers' own checks need file handles, too";
#endif
  // While one worker decodes this image, others open theirs.
  write_bytes(folder_ / "photos" / "0" / "00.jpg", jpeg(4000, 3000));
  for (const char* input : {"photos", "samples.tar"}) {
    const fs::path whole = folder_ / "whole.lmdb";
    ASSERT_EQ(run_program(command(folder_ / input, whole, {"--force"})).exit_code, 0);
    int failed_at_an_image = 0;
    const auto packs = [&](int files) {
      SCOPED_TRACE(std::string(input) + ", open files: " + std::to_string(files));
      const fs::path out = folder_ / "out.lmdb";
      const Result result =
          with_files(files, command(folder_ / input, out, {"--workers", "8", "--resume"}));
      // With one file fewer the program itself does not start.
      if (result.err.find("shared libraries") != std::string::npos) return false;
      if (result.exit_code != 0) {
        EXPECT_EQ(result.exit_code, 1);
        EXPECT_THAT(result.err, HasSubstr("Too many open files"));
        EXPECT_THAT(result.err, HasSubstr(folder_.path().string()));
        EXPECT_THAT(result.err, AllOf(Not(HasSubstr("left out")), Not(HasSubstr("cut short")),
                                      Not(HasSubstr("no tar"))));
        failed_at_an_image += result.err.find(".jpg cannot be read") != std::string::npos ? 1 : 0;
        EXPECT_NE(refusal(out), std::nullopt);
        EXPECT_EQ(run_program(command(folder_ / input, out, {"--resume"})).exit_code, 0);
      }
      EXPECT_EQ(all_bytes(out), all_bytes(whole));
      fs::remove(out);
      return result.exit_code == 0;
    };
    int packed = 0;
    int enough_for_one = 0;
    // Each of eight workers may have a file open, beside the dataset and the standard streams.
    for (int files = 4; packed < 4 && files < 32; ++files)
      if (packs(files) && ++packed == 1) enough_for_one = files;
    EXPECT_EQ(packed, 4);
    if (std::string(input) != "photos") continue;
    // Whether two images are open at once depends on scheduling, so it tries several times.
    for (int again = 0; failed_at_an_image == 0 && again < 50; ++again) packs(enough_for_one);
    EXPECT_GT(failed_at_an_image, 0);
  }
}

/// Runs without the permission to read everything, which root has.
Words without_rights(Words words) {
  if (geteuid() == 0)
    words.insert(words.begin(),
                 {"/usr/bin/setpriv", "--bounding-set=-dac_override,-dac_read_search"});
  return words;
}

TEST_F(PackErrors, WhatMayNotBeReadEndsThePack) {
  const Words words = command(folder_ / "photos", folder_ / "out.lmdb");
  if (run_program(without_rights({MILLRACE_COMMAND, "--version"})).exit_code != 0)
    GTEST_SKIP() << "root may read everything, and setpriv cannot change that";
  for (const char* name : {"2/20.jpg", "2", "2/deep"}) {
    const fs::path hidden = folder_ / "photos" / name;
    if (!fs::exists(hidden)) fs::create_directory(hidden);
    const fs::perms before = fs::status(hidden).permissions();
    fs::permissions(hidden, fs::perms::none);
    expect_error(without_rights(words), hidden.string() + " cannot be read: Permission denied",
                 images, [&] { fs::permissions(hidden, before); });
    fs::remove(folder_ / "out.lmdb");
  }
  // Listed files in a folder that cannot be searched, and a link to such a folder.
  const fs::path secret = folder_ / "secret";
  write_jpeg(secret / "a.jpg");
  fs::create_symlink(secret / "a.jpg", folder_ / "photos" / "0" / "link.jpg");
  fs::permissions(secret, fs::perms::none);
  EXPECT_THAT(run_program(without_rights(words)).err,
              HasSubstr("0/link.jpg cannot be read: Permission denied"));
  write_text(folder_ / "list.csv", "photos/0/0.jpg,1\nsecret/a.jpg,1\n");
  EXPECT_THAT(run_program(without_rights(command(folder_.path(), folder_ / "out.lmdb",
                                                 {"--list", folder_ / "list.csv"})))
                  .err,
              HasSubstr("secret/a.jpg cannot be read: Permission denied"));
  fs::remove(folder_ / "out.lmdb");
  // A mask that may exist.
  EXPECT_THAT(run_program(without_rights(command(folder_ / "photos", folder_ / "out.lmdb",
                                                 {"--masks", secret})))
                  .err,
              HasSubstr("cannot be read: Permission denied"));
  fs::remove(folder_ / "out.lmdb");
  // A pattern must fail if some of its tars are hidden, instead of matching fewer.
  fs::create_directory(folder_ / "tars");
  fs::copy(folder_ / "samples.tar", folder_ / "tars" / "a.tar");
  for (const char* tar : {"*.tar", "a.tar"})
    EXPECT_THAT(run_program(without_rights(command(folder_ / "*" / tar, folder_ / "out.lmdb"))).err,
                HasSubstr(secret.string() + " cannot be searched: Permission denied"));
  EXPECT_FALSE(fs::exists(folder_ / "out.lmdb"));
  fs::permissions(secret, fs::perms::owner_all);
}

// Files of the kernel report a false length, and some cannot be read.
TEST_F(PackErrors, AFileThatCannotBeReadToItsEndEndsThePack) {
  const fs::path link = folder_ / "photos" / "2" / "x.jpg";
  int tried = 0;
  for (const auto& [file, reason] : {std::pair{"/sys/class/net/lo/mtu", "it was changed"},
                                     {"/sys/class/net/lo/speed", "Invalid argument"}}) {
    if (!fs::exists(file)) continue;
    ++tried;
    fs::create_symlink(file, link);
    expect_error(command(folder_ / "photos", folder_ / "out.lmdb"),
                 link.string() + " cannot be read: " + reason, images + 1, [&] {
                   fs::remove(link);
                   write_jpeg(link);
                 });
    fs::remove(link);
    fs::remove(folder_ / "out.lmdb");
  }
  if (tried == 0) GTEST_SKIP() << "the kernel shows no files of a network's device";
}

/// Runs a command with this limit of memory.
Result with_memory(int megabytes, const Words& command) {
  Words all = {"/bin/sh", "-c",
               "ulimit -v " + std::to_string(megabytes * 1024) + "; exec \"$0\" \"$@\""};
  all.insert(all.end(), command.begin(), command.end());
  return run_program(all);
}

// libjpeg buffers a whole progressive image, here 100 MB.
TEST_F(PackErrors, TooLittleMemoryMakesNoImageABadOne) {
#ifdef MILLRACE_ASAN
  GTEST_SKIP() << "the sanitizer takes all of the address space";
#endif
#ifdef MILLRACE_TSAN
  GTEST_SKIP() << "the sanitizer takes all of the address space";
#endif
  const fs::path large = folder_ / "photos" / "0" / "+large.jpg";
  Image plain;
  plain.width = plain.height = 4000;
  plain.pixels.assign(std::size_t{3} * 4000 * 4000, 90);
  write_bytes(large, encode(plain, {.scans = Encoding::Scans::progressive}));
  const fs::path whole = folder_ / "whole.lmdb";
  ASSERT_EQ(run_program(command(folder_ / "photos", whole)).exit_code, 0);
  const std::string reason = ": there is not enough memory";
  int not_packed = 0, not_checked = 0;
  for (int megabytes = 60; megabytes < 200; megabytes += 10) {
    SCOPED_TRACE(megabytes);
    const fs::path out = folder_ / "out.lmdb";
    const Result packed =
        with_memory(megabytes, command(folder_ / "photos", out, {"--force", "--workers", "1"}));
    if (packed.exit_code == 0) {
      EXPECT_EQ(contents(out).size(), images + 1);
    }
    const Result verified =
        with_memory(megabytes, {MILLRACE_COMMAND, "verify", whole, "--workers", "1"});
    EXPECT_THAT(verified.out, Not(HasSubstr("bad")));
    const auto says = [](const Result& result, const std::string& what) {
      return result.err.find(what) != std::string::npos ? 1 : 0;
    };
    not_packed += says(packed, "0/+large.jpg cannot be read" + reason);
    not_checked += says(verified, "record 0 of " + whole.string() + " cannot be checked" + reason);
  }
  EXPECT_GT(not_packed, 0);
  EXPECT_GT(not_checked, 0);
}

TEST_F(PackErrors, WhatIsNoRegularFileIsLeftOut) {
  ASSERT_EQ(mkfifo((folder_ / "photos" / "pipe").c_str(), 0600), 0);
  fs::create_symlink("circle", folder_ / "photos" / "circle");
  write_text(folder_ / "list.csv", "0/0.jpg,1\n1,1\npipe,1\ncircle,1\nnone/a.jpg,2\n0/0.jpg/a,2\n");
  const Result result = run_program(
      command(folder_ / "photos", folder_ / "out.lmdb", {"--list", folder_ / "list.csv"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("left out 5 files:\n"), HasSubstr("  1: is a folder\n"),
                    HasSubstr("  pipe: is not a regular file\n"), HasSubstr("  circle: "),
                    HasSubstr("  none/a.jpg: cannot be read: No such file or directory\n"),
                    HasSubstr("  0/0.jpg/a: cannot be read: Not a directory\n")));
}

TEST_F(PackErrors, AnErrorSaysWhatIsThere) {
  const fs::path link = folder_ / "photos" / "2" / "x.jpg";
  if (!fs::exists("/sys/class/net/lo/mtu"))
    GTEST_SKIP() << "the kernel shows no files of a network's device";
  fs::create_symlink("/sys/class/net/lo/mtu", link);
  const Result result = run_program(command(folder_ / "photos", folder_ / "out.lmdb"));
  EXPECT_THAT(result.err, HasSubstr(" of 42 files are committed to " +
                                    (folder_ / "out.lmdb").string() + ", which is incomplete"));
  EXPECT_EQ(refusal(folder_ / "out.lmdb"), ErrorCode::incomplete);
}

}  // namespace
}  // namespace millrace
