// SPDX-License-Identifier: Apache-2.0
#include "runtime/job_queues.h"

#include <gtest/gtest.h>
#include <millrace/detail/worker_pool.h>

#include <array>
#include <map>

#include "support/fake_job.h"

namespace millrace {
namespace {

std::shared_ptr<Job> items(std::size_t count) {
  return testing::job(count, [](std::size_t, unsigned) {});
}

// An owner that comes and goes all the time does not delay the others.
TEST(JobQueues, OwnersTakeTurnsWhileOthersComeAndGo) {
  const std::array<char, 3> owners{};
  JobQueues queues;
  std::map<const void*, int> taken;
  queues.add(&owners[0], items(10'000), Help::allowed);
  queues.add(&owners[1], items(10'000), Help::allowed);
  for (int take = 0; take < 3000; ++take) {
    if (take % 2 == 0) queues.add(&owners[2], items(1), Help::allowed);
    const auto item = queues.take(false);
    ASSERT_TRUE(item);
    ++taken[item->owner];
    queues.ended(item->owner);
  }
  EXPECT_GE(taken[&owners[0]], 900);
  EXPECT_GE(taken[&owners[1]], 900);
  EXPECT_GE(taken[&owners[2]], 900);
}

TEST(JobQueues, GoOnAfterTheirLastOwnerWent) {
  const std::array<char, 2> owners{};
  JobQueues queues;
  for (int round = 0; round < 3; ++round)
    for (const char& owner : owners) {
      queues.add(&owner, items(2), Help::allowed);
      for (int n = 0; n < 2; ++n) ASSERT_EQ(queues.take(false)->owner, &owner);
      EXPECT_FALSE(queues.take(false));
      for (int n = 0; n < 2; ++n) queues.ended(&owner);
    }
}

}  // namespace
}  // namespace millrace
