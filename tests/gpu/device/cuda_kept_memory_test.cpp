// SPDX-License-Identifier: Apache-2.0
//
// A runtime keeps page-locked memory for its next pipeline.
#include <gtest/gtest.h>
#include <millrace/cuda_device.h>
#include <millrace/pipeline.h>

#include <memory>

#include "gpu/device/cuda_run.h"

namespace millrace {
namespace {

using testing::Checker;
using testing::CudaPipeline;
using testing::eventually;
using testing::GpuRun;
using testing::patience;
namespace stand_in = testing::stand_in;

class CudaKeptMemory : public CudaPipeline {
 protected:
  CudaKeptMemory() { run_.options.conversion = GpuRun::conversion(); }

  /// An evaluation: takes all batches, which must be right.
  Report run_once() {
    Checker checker(run_.expected());
    Report report;
    {
      Pipeline pipeline = run_.on(std::make_shared<CudaDevice>());
      while (const Batch batch = pipeline.next(checker.stream(), patience)) checker.step(batch);
      report = pipeline.report();
    }
    stand_in::drain();
    EXPECT_EQ(checker.right(), checker.batches());
    return report;
  }
};

TEST_F(CudaKeptMemory, IsPinnedOnceForAllPipelinesOfARuntime) {
  const Report first = run_once();
  EXPECT_EQ(stand_in::calls("cudaHostRegister"), run_.options.slots.prefetch);
  run_once();
  run_.options.batch_size = 4;
  const Report smaller = run_once();
  EXPECT_EQ(stand_in::calls("cudaHostRegister"), run_.options.slots.prefetch);
  EXPECT_EQ(stand_in::calls("cudaHostUnregister"), 0U);
  // The host device's memory, which the expected values were made in, is kept as well.
  EXPECT_GE(smaller.memory.kept_host_bytes,
            first.memory.pinned_bytes - smaller.memory.pinned_bytes);
  run_.runtime.reset();
  run_.options.runtime.reset();
  EXPECT_TRUE(eventually(
      [&] { return stand_in::calls("cudaHostUnregister") == run_.options.slots.prefetch; }));
}

TEST_F(CudaKeptMemory, IsUnpinnedWhenMoreCannotBePinned) {
  run_once();
  run_.options.batch_size = 16;
  stand_in::fail("cudaHostRegister", 1, cudaErrorMemoryAllocation);
  stand_in::fail("cudaHostRegister", 2, cudaErrorMemoryAllocation);
  run_once();
  EXPECT_GE(stand_in::calls("cudaHostUnregister"), run_.options.slots.prefetch);
}

}  // namespace
}  // namespace millrace
