// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/instruction_sets.h>

// Selects all targets of the sources that Highway compiles for several targets.
#define HWY_WANT_AVX3_DL
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/highway.h>
#include <millrace/detail/process_warnings.h>
#include <millrace/error.h>
#include <pthread.h>

#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

namespace millrace {
namespace {

/// The results of the checks of this process. Never destroyed, since threads may outlive `main`.
struct Checks {
  std::mutex mutex;
  std::vector<VectorCode*> codes;
  std::vector<std::string> wrong;
};

Checks& checks() {
  static Checks& made = *new Checks;
  return made;
}

/// Keeps the mutex free in a child of fork(), which has no thread that could unlock it.
void keep_free_in_children() {
  const int failed = pthread_atfork([] { checks().mutex.lock(); }, [] { checks().mutex.unlock(); },
                                    [] { checks().mutex.unlock(); });
  if (failed != 0) throw std::bad_alloc();
}

/// Returns the sets that may be chosen. Updates Highway's chosen target, since after a call of
/// `SupportedTargets` alone Highway would also choose disabled sets.
std::int64_t allowed_sets() {
  const std::int64_t sets = hwy::SupportedTargets();
  hwy::GetChosenTarget().Update(sets);
  return sets;
}

/// Returns the set that Highway chooses: a better set has a lower bit.
std::int64_t best_of(std::int64_t sets) {
  const std::int64_t compiled = sets & HWY_TARGETS;
  return compiled == 0 ? HWY_STATIC_TARGET : compiled & -compiled;
}

/// Lets Highway choose only from `sets`. `DisableTargets` is not enough: after it, each call of
/// `SupportedTargets` in the process would choose a disabled set (Highway 1.0.3 to 1.2.0).
void allow(std::int64_t sets) {
  hwy::SetSupportedTargetsForTest(sets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

std::string version_text() {
  return "Highway " + std::to_string(HWY_MAJOR) + "." + std::to_string(HWY_MINOR) + "." +
         std::to_string(HWY_PATCH);
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

bool all_are_right(const std::vector<VectorCode*>& codes) {
  for (const VectorCode* code : codes)
    if (!code->is_right()) return false;
  return true;
}

/// Checks the code, and falls back to another set if it is wrong. Returns the warning about wrong
/// sets, or an empty text.
std::string check_and_fall_back(VectorCode& code) {
  Checks& made = checks();
  const std::lock_guard lock(made.mutex);
  if (code.checked.load(std::memory_order_relaxed)) return {};
  std::vector<std::string> wrong;
  // With another set, all code that was checked before is checked again.
  while (!code.is_right() || (!wrong.empty() && !all_are_right(made.codes))) {
    const std::int64_t sets = allowed_sets();
    const std::int64_t set = best_of(sets);
    const std::int64_t others = sets & ~set;
    wrong.emplace_back(hwy::TargetName(set));
    made.wrong.push_back(wrong.back());
    if ((others & HWY_TARGETS) == 0)
      throw Error(ErrorCode::internal,
                  "instruction set " + joined(wrong) +
                      ": wrong pixels in the self-check, and no other set is left (" +
                      version_text() + "); build millrace with another version of Highway");
    allow(others);
  }
  made.codes.push_back(&code);
  code.checked.store(true, std::memory_order_release);
  if (wrong.empty()) return {};
  return "instruction set " + joined(wrong) + ": wrong pixels in the self-check (" +
         version_text() + "); " + hwy::TargetName(best_of(allowed_sets())) +
         " is used, which is right but may be slower; build millrace with another version of "
         "Highway";
}

}  // namespace

void check_instruction_set(VectorCode& code) {
  static std::once_flag once;
  std::call_once(once, keep_free_in_children);
  // Adds the warning without holding the mutex, since fork() locks the warnings' mutex first.
  if (std::string warning = check_and_fall_back(code); !warning.empty())
    add_process_warning(std::move(warning));
}

InstructionSets instruction_sets() {
  Checks& made = checks();
  const std::lock_guard lock(made.mutex);
  return {hwy::TargetName(best_of(allowed_sets())), made.wrong};
}

}  // namespace millrace
