// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/host_device.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

#include "device/host_stream.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::Gate;
using testing::OpensAtEnd;
using testing::patience;

/// Returns how often a thread of this process has gone to sleep so far; -1 if it has ended.
long sleeps_of(pid_t thread) {
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
  const std::string key = "voluntary_ctxt_switches:";
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key)) return std::stol(line.substr(key.size()));
  return -1;
}

TEST(HostStream, WakesItsThreadForNothingThatNeedsNone) {
  constexpr int rounds = 200;
  HostStream stream;
  HostStream busy;
  Gate gate;
  const OpensAtEnd opens(gate);
  HostEvent passed;
  HostEvent later;
  busy.launch([&gate] { (void)gate.pass(); });
  busy.record(later);
  stream.record(passed);
  pid_t thread = 0;
  stream.launch([&thread] { thread = gettid(); });
  stream.synchronize();
  ASSERT_TRUE(passed.wait(patience));
  const long before = sleeps_of(thread);
  ASSERT_GE(before, 0);
  for (int round = 0; round < rounds; ++round) {
    stream.wait(passed);
    stream.record(passed);
    std::this_thread::yield();
  }
  EXPECT_TRUE(passed.wait(patience));
  for (int round = 0; round < rounds; ++round) {
    stream.wait(later);
    std::this_thread::yield();
  }
  EXPECT_LT(sleeps_of(thread) - before, rounds / 4)
      << "a stream that is idle has passed a new point";

  HostEvent behind;
  stream.record(behind);
  EXPECT_FALSE(behind.wait(5ms)) << "it waits all the same";
  gate.open();
  EXPECT_TRUE(behind.wait(patience));
}

}  // namespace
}  // namespace millrace
