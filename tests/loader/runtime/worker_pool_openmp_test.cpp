// SPDX-License-Identifier: Apache-2.0
//
// Tests of OpenMP inside items: a worker is one thread, whatever the libraries below a transform
// use.
#include <gtest/gtest.h>
#include <millrace/detail/worker_pool.h>
#include <omp.h>

#include <atomic>

#include "support/fake_job.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using testing::eventually;

TEST(WorkerPoolOpenMp, HasOneThreadInAnItemAndKeepsItsNumberOutside) {
  omp_set_num_threads(3);
  std::atomic<int> inside{0};
  std::atomic<int> in_region{0};
  std::atomic<bool> done{false};
  WorkerPool pool(0, 2, {});
  pool.submit(&pool, testing::job(1, [&](std::size_t, unsigned) {
    inside = omp_get_max_threads();
#pragma omp parallel
    ++in_region;
    done = true;
  }));
  ASSERT_TRUE(eventually([&] { return done.load(); }));
  EXPECT_EQ(inside, 1);
  EXPECT_EQ(in_region, 1);
  EXPECT_EQ(omp_get_max_threads(), 3);
}

}  // namespace
}  // namespace millrace
