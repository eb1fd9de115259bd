// SPDX-License-Identifier: Apache-2.0
#include "command/console/progress.h"

#include <gmock/gmock.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/jpeg_samples.h"
#include "support/temporary_folder.h"

namespace millrace::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Progress, TellsCountRateAndTimeLeft) {
  EXPECT_EQ(progress_text({.done = 0, .total = 500}), "0 of 500 (0%)");
  EXPECT_EQ(progress_text({.done = 230, .total = 500, .bytes = 23'000'000, .seconds = 2}),
            "230 of 500 (46%), 115 images/s, 11.5 MB/s, 0:03 left");
  EXPECT_EQ(progress_text({.done = 10, .total = 500'010, .bytes = 1'000'000, .seconds = 1}),
            "10 of 500010 (0%), 10 images/s, 1.0 MB/s, 13:53:20 left");
  EXPECT_EQ(progress_text({.done = 499, .total = 500, .bytes = 0, .seconds = 499}),
            "499 of 500 (99%), 1 images/s, 0.0 MB/s, 0:01 left");
  EXPECT_EQ(progress_text({.done = 500, .total = 500, .bytes = 0, .seconds = 5}),
            "500 of 500 (100%), 100 images/s, 0.0 MB/s, 0:00 left");
}

TEST(Progress, DrawsABarNoWiderThanTheTerminal) {
  const ProgressState half{.done = 250, .total = 500, .bytes = 25'000'000, .seconds = 2.5};
  const std::string bar = progress_bar(half, 120);
  EXPECT_EQ(bar, "[####################                    ] " + progress_text(half));
  for (int columns = 0; columns < 150; ++columns)
    EXPECT_LE(progress_bar(half, columns).size(), static_cast<std::size_t>(columns));
  EXPECT_THAT(progress_bar(half, 70), HasSubstr("#"));
  EXPECT_THAT(progress_bar(half, 50), Not(HasSubstr("#")));
}

TEST(Progress, IsOneRedrawnLineOnATerminal) {
  const testing::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "photos");
  const testing::Bytes bytes = testing::encode(testing::noise(64, 64, 1), {});
  for (int image = 0; image < 20; ++image)
    std::ofstream(folder / "photos" / std::to_string(image), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  const std::string photos = (folder / "photos").string();
  const std::string out = (folder / "out.lmdb").string();

  winsize size{.ws_row = 24, .ws_col = 100, .ws_xpixel = 0, .ws_ypixel = 0};
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  ASSERT_GE(child, 0);
  if (child == 0) {
    execl(MILLRACE_COMMAND, MILLRACE_COMMAND, "pack", photos.c_str(), out.c_str(), nullptr);
    _exit(127);
  }
  std::string shown;
  char part[1024];
  for (ssize_t length = 0; (length = read(terminal, part, sizeof part)) > 0;)
    shown.append(part, static_cast<std::size_t>(length));
  close(terminal);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_THAT(shown, ContainsRegex("\r\\[#+\\] 20 of 20 \\(100%\\), [0-9]+ images/s, [0-9.]+ MB/s, "
                                   "0:00 left *\r\npacked 20 records"));
}

}  // namespace
}  // namespace millrace::cli
