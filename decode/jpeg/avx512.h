// SPDX-License-Identifier: Apache-2.0
//
// The instructions of AVX-512 that Highway does not offer. Included only by sources outside the
// unity build.
#pragma once

namespace millrace::jpeg {

/// Returns whether the instruction set that Highway chooses includes VBMI, VBMI2 and VNNI.
bool has_vbmi2();

}  // namespace millrace::jpeg

#ifdef __x86_64__

#ifdef __clang__
#include <immintrin.h>
#else  // GCC 12 warns of values that its own header leaves uninitialised on purpose.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

/// Compiles a function for the instruction sets that `has_vbmi2` checks.
#define MILLRACE_VBMI2   \
  __attribute__((target( \
      "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx512vnni,bmi,bmi2,popcnt")))
#define MILLRACE_VBMI2_INLINE MILLRACE_VBMI2 __attribute__((always_inline)) inline

#endif
