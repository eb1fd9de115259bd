// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/host_device.h>
#include <sys/resource.h>

#include <thread>

#include "device/host_stream.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::Gate;
using testing::OpensAtEnd;
using testing::patience;

TEST(HostStream, WakesItsThreadForNothingThatNeedsNone) {
  constexpr int rounds = 1000;
  const auto sleeps = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
  };
  HostStream stream;
  HostStream busy;
  Gate gate;
  const OpensAtEnd opens(gate);
  HostEvent passed;
  HostEvent later;
  busy.launch([&gate] { (void)gate.pass(); });
  busy.record(later);
  stream.record(passed);
  ASSERT_TRUE(passed.wait(patience));
  const long before = sleeps();
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
  EXPECT_LT(sleeps() - before, rounds / 4) << "a stream that is idle has passed a new point";

  HostEvent behind;
  stream.record(behind);
  EXPECT_FALSE(behind.wait(5ms)) << "it waits all the same";
  gate.open();
  EXPECT_TRUE(behind.wait(patience));
}

}  // namespace
}  // namespace millrace
