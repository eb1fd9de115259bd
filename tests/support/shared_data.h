// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

namespace millrace::testing {

/// The photographs and golden files that lie beside the project on a development machine.
const std::filesystem::path& shared_dir();

}  // namespace millrace::testing

/// Skips the running test with a message if a file or folder of ../shared is missing.
#define MILLRACE_NEEDS_SHARED(name)                                                      \
  do {                                                                                   \
    if (!std::filesystem::exists(::millrace::testing::shared_dir() / (name)))            \
      GTEST_SKIP() << "needs " << (::millrace::testing::shared_dir() / (name)).string(); \
  } while (false)
