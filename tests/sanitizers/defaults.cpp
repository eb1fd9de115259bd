// SPDX-License-Identifier: Apache-2.0
//
// What the sanitizers are told by every program of a sanitizer build (MILLRACE_SANITIZE), however
// it is started; the *SAN_OPTIONS of the environment come on top.

extern "C" {

const char* __asan_default_options() {
  return "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:check_"
         "initialization_order=1";
}

const char* __ubsan_default_options() { return "print_stacktrace=1:halt_on_error=1"; }

const char* __tsan_default_options() {
  return "halt_on_error=1:second_deadlock_stack=1:history_size=4";
}

// No suppressions are needed: Debian's oneTBB is not instrumented, but what workers hand over goes
// through millrace's own locks. Should one become so, it must not be `race:libtbb.so`: that leaves
// out everything workers do, since a frame of libtbb lies below all of it. The test
// sanitizers.planted_race sees to that.
}
