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

/// Vector code that is compiled for several instruction sets, and its self-check. Static: it exists
/// as long as the process.
struct VectorCode {
  /// Runs the code on built-in data, with the instruction set that Highway chooses at this time.
  /// Returns whether the result has the stored checksum. Must not call `choose_instruction_set`.
  bool (*is_right)();
  /// True after the check. It is stored with release order, so a thread that loads it with acquire
  /// order sees the chosen set.
  std::atomic<bool> checked = false;
};

/// Checks `code` with the instruction sets that Highway can choose, best first. Stops at the first
/// set that gives correct results for `code` and for all code checked before. Disables sets with
/// wrong results for the whole process, and adds a process warning. Throws `Error` (`internal`) if
/// no compiled set gives correct results.
void check_instruction_set(VectorCode& code);

/// Checks `code` at the first call, which takes less than 1 ms. Later calls read one flag. Call it
/// before using the code, once per worker or per image.
inline void choose_instruction_set(VectorCode& code) {
  if (!code.checked.load(std::memory_order_acquire)) check_instruction_set(code);
}

struct InstructionSets {
  /// Highway's name of the set in use, such as "AVX2".
  std::string used;
  /// Sets of this processor that failed a check, best first.
  std::vector<std::string> wrong{};
};

/// Returns the result of all checks so far.
InstructionSets instruction_sets();

namespace jpeg {

/// The vector code of `decode/`.
extern VectorCode stages;

}  // namespace jpeg

}  // namespace millrace
