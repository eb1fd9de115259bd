// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "bench/c/numbers.h"

namespace millrace {
namespace {

using testing::NumbersRun;

constexpr const char* sequential =
    R"({"format": 1, "options": {"workers": 2, "batch_size": 4, "prefetch": 2},
        "run": {"order": "sequential", "epochs": 1}})";

TEST(CFork, AChildMayFreeHandles) {
  NumbersRun run;
  ASSERT_EQ(run.start(sequential), MILLRACE_OK) << run.error.message;
  std::jthread busy([&](const std::stop_token& stop) {
    std::uint64_t size = 0;
    while (!stop.stop_requested()) (void)millrace_dataset_size(run.dataset, &size, nullptr);
  });
  for (int k = 0; k < 20; ++k) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      millrace_dataset_free(run.dataset);
      millrace_pipeline_free(run.pipeline);
      _exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

TEST(CFork, AChildMayReadABatch) {
  NumbersRun run;
  ASSERT_EQ(run.start(sequential), MILLRACE_OK) << run.error.message;
  millrace_batch* batch = nullptr;
  ASSERT_EQ(run.next(batch), MILLRACE_OK) << run.error.message;
  const auto size_of_batch = [&] {
    millrace_batch_facts facts{};
    facts.struct_bytes = sizeof facts;
    return millrace_batch_describe(batch, &facts, nullptr) == MILLRACE_OK ? facts.size : 0;
  };
  const std::uint64_t size = size_of_batch();
  {
    const auto read = [&](const std::stop_token& stop) {
      while (!stop.stop_requested()) (void)size_of_batch();
    };
    std::vector<std::jthread> readers;
    for (int k = 0; k < 4; ++k) readers.emplace_back(read);
    for (int k = 0; k < 200; ++k) {
      const pid_t child = fork();
      if (child == 0) {
        alarm(60);
        _exit(size_of_batch() == size ? 0 : 1);
      }
      int status = -1;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_EQ(status, 0);
    }
  }
  millrace_batch_free(batch);
}

TEST(CFork, AChildMayNotRecordAStream) {
  NumbersRun run;
  ASSERT_EQ(run.start(sequential), MILLRACE_OK) << run.error.message;
  millrace_batch* batch = nullptr;
  ASSERT_EQ(run.next(batch), MILLRACE_OK) << run.error.message;
  const pid_t child = fork();
  if (child == 0) {
    millrace_batch_record_stream(batch, 1, &run.error);
    _exit(std::strcmp(run.error.message, "the batch was made before fork()") == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  millrace_batch_free(batch);
}

TEST(CFork, AChildLeavesUserDataToItsParent) {
  NumbersRun run;
  const pid_t child = fork();
  if (child == 0) {
    millrace_dataset_free(run.dataset);
    millrace_transform_free(run.transform);
    _exit(run.numbers.freed);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace millrace
