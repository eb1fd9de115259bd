// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace millrace::testing {

/// A running program whose output goes to files.
class RunningProgram {
 public:
  struct Result {
    /// -1 if a signal ended it.
    int exit_code = -1;
    int signal = 0;
    std::string out;
    std::string err;
    /// Its largest resident memory.
    std::uint64_t peak_bytes = 0;
  };

  explicit RunningProgram(std::vector<std::string> arguments) {
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    constexpr int flags = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, (folder_ / "out").c_str(), flags,
                                     0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, (folder_ / "err").c_str(), flags,
                                     0600);
    // A shell starts programs in the background with SIGINT ignored, and programs inherit that.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    posix_spawnattr_setsigdefault(&attributes, &interrupt);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    const int failed = posix_spawn(&pid_, argv[0], &actions, &attributes, argv.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) throw std::runtime_error("cannot start " + arguments[0]);
  }
  ~RunningProgram() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  void send(int signal) const { kill(pid_, signal); }

  /// Returns whether it has ended. `wait` returns at once then.
  bool ended() const {
    siginfo_t end{};
    return waitid(P_PID, static_cast<id_t>(pid_), &end, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           end.si_pid == pid_;
  }

  Result wait() {
    int status = 0;
    rusage usage{};
    wait4(pid_, &status, 0, &usage);
    pid_ = 0;
    Result result{.out = contents("out"),
                  .err = contents("err"),
                  .peak_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024};
    if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
    return result;
  }

 private:
  std::string contents(const char* name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  TemporaryFolder folder_;
  pid_t pid_ = 0;
};

/// Runs a program to its end.
inline RunningProgram::Result run_program(std::vector<std::string> arguments) {
  return RunningProgram(std::move(arguments)).wait();
}

}  // namespace millrace::testing
