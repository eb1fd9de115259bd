// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace millrace::testing {

/// Runs this program again with `arguments`, by a shell after `before` ("taskset -c 0 ", "cd / &&
/// "), and returns its output. Expects the exit status 0.
inline std::string run_self(const std::string& before, const std::string& arguments) {
  const std::string command =
      before + std::filesystem::read_symlink("/proc/self/exe").string() + " " + arguments + " 2>&1";
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    ADD_FAILURE() << "cannot run " << command;
    return {};
  }
  std::string output;
  std::array<char, 4096> bytes{};
  while (const std::size_t read = std::fread(bytes.data(), 1, bytes.size(), pipe))
    output.append(bytes.data(), read);
  const int status = pclose(pipe);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << command << "\n" << output;
  return output;
}

/// A control group (version 2) with settings: file name to content. It is removed with the object,
/// when it has no processes any more.
class ControlGroup {
 public:
  ControlGroup(const std::filesystem::path& parent, const std::string& name,
               const std::map<std::string, std::string>& settings)
      : folder_(parent / name) {
    write(parent / "cgroup.subtree_control", "+cpuset +cpu");
    std::filesystem::create_directory(folder_);
    for (const auto& [file, content] : settings) write(folder_ / file, content);
  }
  explicit ControlGroup(const std::string& name, const std::map<std::string, std::string>& settings)
      : ControlGroup("/sys/fs/cgroup", name, settings) {}
  ~ControlGroup() {
    std::error_code failed;
    std::filesystem::remove(folder_, failed);
    EXPECT_FALSE(failed) << folder_ << ": " << failed.message();
  }
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  /// For `run_self`: moves the shell into the group.
  std::string enter() const { return "echo 0 >" + (folder_ / "cgroup.procs").string() + " && "; }

 private:
  static void write(const std::filesystem::path& path, const std::string& content) {
    std::ofstream file(path);
    file << content << std::flush;
    EXPECT_TRUE(file) << "cannot write '" << content << "' to " << path;
  }

  std::filesystem::path folder_;
};

}  // namespace millrace::testing
