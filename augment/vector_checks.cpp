// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/vector_checks.h>

namespace millrace {

InstructionSets checked_instruction_sets() {
  for (VectorCode* code : {&jpeg::stages, &resample_passes, &pixel_passes})
    choose_instruction_set(*code);
  return instruction_sets();
}

}  // namespace millrace
