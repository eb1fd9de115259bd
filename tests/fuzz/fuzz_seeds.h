// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "support/temporary_folder.h"

namespace millrace::testing {

/// Writes the seeds of a fuzzer into a folder and ends the program, if it is called with `--seeds
/// FOLDER`. The folder may contain seeds of an earlier call. Without seeds, libFuzzer begins with
/// random bytes, which take long to become a valid file.
template <typename Write>
void write_seeds_if_asked(int argc, char** argv, const Write& write) {
  if (argc != 3 || std::strcmp(argv[1], "--seeds") != 0) return;
  {
    const TemporaryFolder written;
    write(written.path());
    std::filesystem::copy(written.path(), argv[2],
                          std::filesystem::copy_options::overwrite_existing |
                              std::filesystem::copy_options::recursive);
  }
  std::exit(0);
}

/// Ends the program unless an error is allowed for damaged input.
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
