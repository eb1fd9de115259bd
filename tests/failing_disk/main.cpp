// SPDX-License-Identifier: Apache-2.0
//
// The tests of a failing disk. With `--write FOLDER` it writes the disk's files instead.
#include <gtest/gtest.h>

#include <string_view>

#include "failing_disk/disk_files.h"

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--write") {
    millrace::testing::write_disk_files(argv[2]);
    return 0;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
