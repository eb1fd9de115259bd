// SPDX-License-Identifier: Apache-2.0
//
// The instruction set (Highway's target) that the vector code of this process uses. For millrace's
// own folders.
//
// Threads: any thread may call these functions.
#pragma once

#include <millrace/detail/export.h>

#include <atomic>
#include <string>
#include <vector>

namespace MILLRACE_API millrace {

/// Vector code that is compiled for several instruction sets, with its self-check. Lives as long as
/// the process.
struct VectorCode {
  /// Runs the code on built-in data with the set that Highway chooses now. Returns whether the
  /// result has the stored checksum. Must not call `use_right_set`.
  bool (*is_right)();
  /// Set after the check. Its release makes the chosen set visible to threads that acquire it.
  std::atomic<bool> checked = false;
};

/// Checks the set that Highway chooses, the better sets first. Ends with the first set that is
/// right for all code checked so far. Wrong sets are disabled for the whole process, with a process
/// warning. Throws `Error` (`internal`) if no compiled set is right.
void check_instruction_set(VectorCode& code);

/// Call before the code is used, per worker or per image. The first call checks the instruction set
/// and takes less than 1 ms; the others read one flag.
inline void use_right_set(VectorCode& code) {
  if (!code.checked.load(std::memory_order_acquire)) check_instruction_set(code);
}

struct InstructionSets {
  /// Highway's name: "AVX2".
  std::string used;
  /// Sets of this processor that failed a check, best first.
  std::vector<std::string> wrong{};
};

/// Returns the sets after the checks so far.
InstructionSets instruction_sets();

namespace jpeg {

/// The vector code of `decode/`.
extern VectorCode stages;

}  // namespace jpeg

}  // namespace millrace
