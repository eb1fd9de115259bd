// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <millrace/dataset.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "support/run_program.h"
#include "support/shared_data.h"
#include "support/stored_records.h"
#include "support/temporary_folder.h"

namespace millrace::testing {

/// Datasets written by python-lmdb (write_lmdb.py).
class WrittenLmdb {
 public:
  explicit WrittenLmdb(const std::vector<std::string>& parts) {
    std::vector<std::string> command = {"/usr/bin/python3", MILLRACE_WRITE_LMDB,
                                        folder_.path().string(), (shared_dir() / "data/photos")};
    command.insert(command.end(), parts.begin(), parts.end());
    if (!std::filesystem::exists(command[0])) {
      missing_ = "needs " + command[0];
      return;
    }
    const RunningProgram::Result result = run_program(std::move(command));
    if (result.exit_code == 77)
      missing_ = "needs python3-lmdb, python3-msgpack and python3-pil: " + result.out;
    else
      EXPECT_EQ(result.exit_code, 0) << result.err;
  }

  /// The missing programs or modules; empty if the datasets were written.
  const std::string& missing() const { return missing_; }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
  std::string missing_;
};

/// A record as the script has written it: its key, then name and bytes of each field.
using ExpectedRecord = std::vector<std::string>;

inline std::vector<ExpectedRecord> expected_records(const std::filesystem::path& path) {
  const std::string contents = file_contents(path);
  std::size_t at = 0;
  const auto number = [&] {
    std::uint32_t value = 0;
    std::memcpy(&value, contents.data() + at, sizeof value);
    at += sizeof value;
    return value;
  };
  std::vector<ExpectedRecord> records;
  while (at < contents.size()) {
    ExpectedRecord& record = records.emplace_back(number());
    for (std::string& part : record) {
      const std::uint32_t length = number();
      part = contents.substr(at, length);
      at += length;
    }
  }
  return records;
}

}  // namespace millrace::testing

/// Skips the running test with the reason if the datasets could not be written.
#define MILLRACE_NEEDS_WRITTEN(written) \
  if (!(written).missing().empty()) GTEST_SKIP() << (written).missing()
