// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MILLRACE_TSAN 1
#endif
#if __has_feature(address_sanitizer)
#define MILLRACE_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define MILLRACE_TSAN 1
#endif
#if defined(__SANITIZE_ADDRESS__)
#define MILLRACE_ASAN 1
#endif

namespace millrace::testing {

/// Tests of all photographs take one in so many of them. With a sanitizer they take minutes
/// otherwise.
#if defined(MILLRACE_ASAN) || defined(MILLRACE_TSAN)
inline constexpr int one_in = 10;
#else
inline constexpr int one_in = 1;
#endif

}  // namespace millrace::testing
