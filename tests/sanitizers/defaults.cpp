// SPDX-License-Identifier: Apache-2.0
//
// Default options of the sanitizers for every program of a sanitizer build (MILLRACE_SANITIZE),
// however it is started. The *SAN_OPTIONS of the environment are added to them.

extern "C" {

const char* __asan_default_options() {
  return "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:check_"
         "initialization_order=1";
}

const char* __ubsan_default_options() { return "print_stacktrace=1:halt_on_error=1"; }

const char* __tsan_default_options() {
  return "halt_on_error=1:second_deadlock_stack=1:history_size=4";
}

// No suppressions are needed: Debian's oneTBB is not instrumented, but workers exchange data
// through millrace's own locks. If one is ever needed, it must not be `race:libtbb.so`. That would
// suppress all races between workers, because their stacks always contain a frame of libtbb. The
// test sanitizers.planted_race checks this.
}
