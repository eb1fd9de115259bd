// SPDX-License-Identifier: Apache-2.0
//
// Tests of a run that ends while its stream begins. They make the calls of the reading thread
// themselves.
#include "dataset/stream/stream_windows.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "loader/pipeline/stream/fake_stream.h"

namespace millrace {
namespace {

using testing::MemoryStream;

/// A run over 1000 records.
struct WindowsRun {
  std::shared_ptr<MemoryStream> stream = std::make_shared<MemoryStream>(1000);
  std::shared_ptr<std::atomic<bool>> was_read = std::make_shared<std::atomic<bool>>(false);

  std::shared_ptr<StreamWindows> windows(std::uint64_t first_record) const {
    return std::make_shared<StreamWindows>(
        stream, OnePassOptions(), StreamWindows::Run{.end_epoch = 1, .first_record = first_record},
        was_read);
  }
};

TEST(StreamWindows, ClosedBeforeItIsReadItDoesNotUseTheStream) {
  for (const std::uint64_t first_record : {0U, 100U}) {
    const WindowsRun run;
    run.stream->on_restart = [] { ADD_FAILURE() << "this stream cannot restart"; };
    const auto windows = run.windows(first_record);
    windows->close();
    windows->read();
    EXPECT_EQ(run.stream->given(), 0U);
    EXPECT_EQ(run.stream->skipped(), 0U);
  }
}

TEST(StreamWindows, ClosedWhileTheStreamRestartsItSkipsNothing) {
  const WindowsRun run;
  run.stream->restarts = true;
  *run.was_read = true;
  const auto windows = run.windows(100);
  int restarts = 0;
  run.stream->on_restart = [&] {
    ++restarts;
    windows->close();  // the restart then takes the interrupt back
  };
  windows->read();
  EXPECT_EQ(restarts, 1);
  EXPECT_EQ(run.stream->skipped(), 0U);
}

TEST(StreamWindows, ClosedWhileRecordsAreSkippedItReadsNoFurtherOnes) {
  const WindowsRun run;
  const auto windows = run.windows(900);
  run.stream->on_next = [&](std::uint64_t record) {
    if (record == 10) windows->close();
  };
  windows->read();
  EXPECT_EQ(run.stream->skipped(), 900U);
  EXPECT_EQ(run.stream->given(), 11U);
}

}  // namespace
}  // namespace millrace
