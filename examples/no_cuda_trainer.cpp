// SPDX-License-Identifier: Apache-2.0
//
// Replaces cuda_trainer.cpp if the example is built without CUDA.
#include <millrace/error.h>

#include "trainer.h"

bool have_cuda() { return false; }

std::unique_ptr<Trainer> make_cuda_trainer(int, const TrainerOptions&) {
  throw millrace::Error(millrace::ErrorCode::device,
                        "no CUDA device: this program was built without CUDA; use --device host");
}
