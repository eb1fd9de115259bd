// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace millrace::testing {

/// Writes the seeds of a fuzzer into a folder and ends the program, if it is called with `--seeds
/// FOLDER`. libFuzzer itself begins with random bytes, which take long to look like a file.
template <typename Write>
void write_seeds_if_asked(int argc, char** argv, const Write& write) {
  if (argc != 3 || std::strcmp(argv[1], "--seeds") != 0) return;
  std::filesystem::create_directories(argv[2]);
  write(std::filesystem::path(argv[2]));
  std::exit(0);
}

/// Ends the program unless an error is one that damaged input may end in.
inline void expect_damage(const Error& error) {
  switch (error.code()) {
    case ErrorCode::not_found:
    case ErrorCode::corrupt:
    case ErrorCode::incomplete:
    case ErrorCode::bad_record:
      return;
    default:
      std::fprintf(stderr, "not an error of damaged input: %s\n", error.what());
      std::abort();
  }
}

}  // namespace millrace::testing
