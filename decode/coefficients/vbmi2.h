// SPDX-License-Identifier: Apache-2.0
//
// Intrinsics of AVX-512 VBMI2, whose instructions Highway does not offer.
#pragma once

#ifdef __x86_64__

#ifdef __clang__
#include <immintrin.h>
#else  // GCC 12 warns of a value that its own header leaves uninitialised on purpose.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

#define MILLRACE_VBMI2 \
  __attribute__((      \
      target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi,bmi2,popcnt")))

namespace millrace::coefficients {

/// Returns whether the instruction set that Highway chooses includes VBMI2.
bool has_vbmi2();

}  // namespace millrace::coefficients

#endif
