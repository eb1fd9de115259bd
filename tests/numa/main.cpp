// SPDX-License-Identifier: Apache-2.0
//
// The tests for two NUMA nodes. With one of these arguments it prints information instead, for a
// test that runs it restricted: --runtime prints the runtime, --batches the hash of a run's
// batches.
#include <gtest/gtest.h>

#include <cstdio>
#include <string_view>

#include "numa/describe_runtime.h"
#include "numa/hash_batches.h"

int main(int argc, char** argv) {
  const std::string_view argument = argc == 2 ? argv[1] : "";
  if (argument == "--runtime") {
    std::fputs(millrace::testing::describe_runtime().c_str(), stdout);
    return 0;
  }
  if (argument == "--batches") {
    std::fputs(millrace::testing::hash_batches().c_str(), stdout);
    return 0;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
