// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <millrace/detail/replace_file.h>
#include <millrace/error.h>
#include <millrace/options_file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/file_descriptor.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ReplaceFile : public ::testing::Test {
 protected:
  ReplaceFile() { std::ofstream(file_) << "old"; }

  static std::string text_of(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }

  /// Calls `write` while files may have 100 bytes only. Returns its error.
  template <typename Write>
  static Error error_on_a_full_disk(const Write& write) {
    rlimit before{};
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    rlimit small = before;
    small.rlim_cur = 100;
    const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    Error found(ErrorCode::internal, "it succeeded");
    try {
      write();
    } catch (const Error& error) {
      found = error;
    }
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, old_handler);
    return found;
  }

  const testing::TemporaryFolder folder_;
  const fs::path file_ = folder_ / "file.txt";
};

TEST_F(ReplaceFile, WritesANewFileAndAnOldOne) {
  for (const fs::path& path : {file_, folder_ / "new.txt"}) {
    replace_file(path, "new");
    EXPECT_EQ(text_of(path), "new");
  }
  EXPECT_EQ(files(), 2U);
}

TEST_F(ReplaceFile, AFailureLeavesTheOldFile) {
  const Error error = error_on_a_full_disk([&] { replace_file(file_, std::string(1000, 'x')); });
  EXPECT_EQ(error.code(), ErrorCode::io);
  EXPECT_THAT(error.what(), HasSubstr("file.txt: cannot be written: "));
  EXPECT_EQ(text_of(file_), "old");
  EXPECT_EQ(files(), 1U);
}

TEST_F(ReplaceFile, AFailureLeavesTheOldOptions) {
  SavedOptions options;
  options.why = std::string(1000, 'x');
  const Error error = error_on_a_full_disk([&] { save_options(file_, options); });
  EXPECT_EQ(error.code(), ErrorCode::io);
  EXPECT_EQ(text_of(file_), "old");
  EXPECT_EQ(files(), 1U);
}

TEST_F(ReplaceFile, KeepsPermissionsAndLinks) {
  fs::permissions(file_, fs::perms(0640));
  fs::create_directory(folder_ / "links");
  const fs::path link = folder_ / "links" / "link.txt";
  fs::create_symlink("../file.txt", link);
  replace_file(link, "new");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(text_of(file_), "new");
  EXPECT_EQ(fs::status(file_).permissions(), fs::perms(0640));
  fs::remove(file_);
  replace_file(link, "newer");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(text_of(file_), "newer");
}

TEST_F(ReplaceFile, OtherHardLinksKeepTheOldText) {
  fs::create_hard_link(file_, folder_ / "other.txt");
  replace_file(file_, "new");
  EXPECT_EQ(text_of(file_), "new");
  EXPECT_EQ(text_of(folder_ / "other.txt"), "old");
}

TEST_F(ReplaceFile, AFileWithoutWritePermissionStays) {
  fs::permissions(folder_.path(), fs::perms::all);
  fs::permissions(file_, fs::perms(0444));
  const uid_t user = geteuid();
  constexpr uid_t nobody = 65534;
  // Root may write every file.
  if (user == 0 && seteuid(nobody) != 0) GTEST_SKIP() << "root cannot become another user";
  const auto refused = [&](const auto& write) {
    try {
      write();
      return std::string("it succeeded");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::io);
      return std::string(error.what());
    }
  };
  const std::string by_text = refused([&] { replace_file(file_, "new"); });
  const std::string by_options = refused([&] { save_options(file_, {}); });
  EXPECT_EQ(seteuid(user), 0);
  EXPECT_THAT(by_text, HasSubstr("file.txt: cannot be written: Permission denied"));
  EXPECT_THAT(by_options, HasSubstr("file.txt: cannot be written: Permission denied"));
  EXPECT_EQ(text_of(file_), "old");
  EXPECT_EQ(files(), 1U);
}

TEST_F(ReplaceFile, WritesAPipeInPlace) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const FileDescriptor reader = FileDescriptor::open(pipe.c_str(), O_RDWR | O_NONBLOCK);
  replace_file(pipe, "new");
  std::array<char, 8> bytes{};
  EXPECT_EQ(::read(reader.get(), bytes.data(), bytes.size()), 3);
  EXPECT_STREQ(bytes.data(), "new");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

}  // namespace
}  // namespace millrace
