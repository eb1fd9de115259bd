// SPDX-License-Identifier: Apache-2.0
#include "measure/diagnose/page_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <millrace/error.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class PageCache : public ::testing::Test {
 protected:
  static constexpr std::size_t bytes = 1'000'003;

  void write(const fs::path& path) const {
    std::ofstream(path, std::ios::binary) << std::string(bytes, 'x');
  }
  void read(const fs::path& path) const {
    std::ifstream file(path, std::ios::binary);
    std::vector<char> contents(bytes);
    file.read(contents.data(), static_cast<std::streamsize>(bytes));
  }

  const testing::TemporaryFolder folder_;
  const fs::path file_ = folder_ / "file";
  const std::vector<fs::path> files_{file_};
};

TEST_F(PageCache, AFileThatWasJustWrittenAndReadIsCached) {
  write(file_);
  read(file_);
  const CachedBytes cached = cached_bytes(files_);
  EXPECT_EQ(cached.all, bytes);
  EXPECT_EQ(cached.cached, bytes);
  EXPECT_EQ(cached.share(), 1);
}

TEST_F(PageCache, DroppedPagesAreGoneUntilTheyAreRead) {
  if (lies_in_memory(folder_.path()))
    GTEST_SKIP() << "the folder for temporary files lies in memory";
  write(file_);  // dirty pages, not written back yet
  drop_from_cache(files_);
  EXPECT_EQ(cached_bytes(files_).cached, 0u);
  read(file_);
  EXPECT_EQ(cached_bytes(files_).cached, bytes);
}

TEST_F(PageCache, APartThatWasReadIsAPart) {
  if (lies_in_memory(folder_.path()))
    GTEST_SKIP() << "the folder for temporary files lies in memory";
  write(file_);
  drop_from_cache(files_);
  const int file = open(file_.c_str(), O_RDONLY);
  ASSERT_GE(file, 0);
  ASSERT_EQ(posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM), 0);
  char byte = 0;
  EXPECT_EQ(pread(file, &byte, 1, 500'000), 1);
  close(file);
  EXPECT_GT(cached_bytes(files_).cached, 0u);
  EXPECT_LT(cached_bytes(files_).cached, bytes);
}

TEST_F(PageCache, PagesThatAreMappedAndTouchedStay) {
  write(file_);
  const int file = open(file_.c_str(), O_RDONLY);
  ASSERT_GE(file, 0);
  void* map = mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0);
  close(file);
  ASSERT_NE(map, MAP_FAILED);
  drop_from_cache(files_);
  EXPECT_EQ(cached_bytes(files_).share(), 1);
  munmap(map, bytes);
}

TEST_F(PageCache, CountsOverAllFiles) {
  const std::vector<fs::path> two{file_, folder_ / "other"};
  for (const fs::path& path : two) {
    write(path);
    read(path);
  }
  EXPECT_EQ(cached_bytes(two).all, 2 * bytes);
  EXPECT_EQ(cached_bytes(two).cached, 2 * bytes);
  if (lies_in_memory(folder_.path())) return;
  drop_from_cache(files_);
  EXPECT_EQ(cached_bytes(two).cached, bytes);
  drop_from_cache(two);
  EXPECT_EQ(cached_bytes(two).share(), 0);
}

TEST_F(PageCache, AnEmptyFileHasNoPages) {
  std::ofstream(file_).flush();
  drop_from_cache(files_);
  EXPECT_EQ(cached_bytes(files_).all, 0u);
  EXPECT_EQ(cached_bytes(files_).share(), 0);
}

TEST_F(PageCache, ErrorsNameTheFile) {
  for (const fs::path& path : {folder_ / "missing", folder_.path()}) {
    const std::vector<fs::path> files{path};
    try {
      cached_bytes(files);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::io);
      EXPECT_THAT(error.what(), HasSubstr(path.string()));
    }
  }
  const std::vector<fs::path> missing{folder_ / "missing"};
  EXPECT_THROW(drop_from_cache(missing), Error);
}

TEST(FileSystem, KnowsWhatLiesInMemory) {
  if (!fs::exists("/dev/shm")) GTEST_SKIP() << "there is no /dev/shm";
  EXPECT_TRUE(lies_in_memory("/dev/shm"));
  EXPECT_FALSE(lies_in_memory("/proc"));
}

TEST_F(PageCache, StorageBytesOnlyGrow) {
  const auto before = bytes_from_storage();
  if (!before) GTEST_SKIP() << "the system does not tell";
  write(file_);
  drop_from_cache(files_);
  read(file_);
  EXPECT_GE(bytes_from_storage().value(), *before);
}

}  // namespace
}  // namespace millrace::cli
