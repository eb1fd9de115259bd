// SPDX-License-Identifier: Apache-2.0
#include "support/shared_data.h"

const std::filesystem::path& millrace::testing::shared_dir() {
  static const std::filesystem::path path = MILLRACE_SHARED_DIR;
  return path;
}
