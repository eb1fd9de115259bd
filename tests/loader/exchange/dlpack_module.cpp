// SPDX-License-Identifier: Apache-2.0
// Functions that round_trip.py calls through ctypes: a pipeline whose fields it takes as DLPack
// tensors.
#include <millrace/dlpack.h>
#include <millrace/host_device.h>
#include <millrace/pipeline.h>

#include "exchange/every_dtype.h"
#include "support/fake_dataset.h"

namespace {

using namespace millrace;

Pipeline& pipeline() {
  static Pipeline made(std::make_shared<testing::MemoryDataset>(64),
                       std::make_shared<testing::EveryDtype>(), std::make_shared<HostDevice>(),
                       {.batch_size = 8, .order = Order::sequential(), .epochs = 0});
  return made;
}

Batch& batch() {
  static Batch current;
  return current;
}

}  // namespace

extern "C" {

/// Takes the next batch, returns its slot.
int take() {
  batch() = pipeline().next();
  return static_cast<int>(batch().slot());
}
/// Releases the batch that `take` took.
void let_go() { batch().reset(); }
DLManagedTensor* field(const char* name) { return to_dlpack(batch()[name]); }
DLManagedTensorVersioned* versioned_field(const char* name) {
  return to_dlpack_versioned(batch()[name], {.read_only = true});
}
}
