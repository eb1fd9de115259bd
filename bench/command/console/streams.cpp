// SPDX-License-Identifier: Apache-2.0
#include "command/console/streams.h"

#include <fcntl.h>
#include <millrace/detail/errno_text.h>
#include <millrace/error.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "measure/text/text.h"

namespace millrace::cli {
namespace {

/// Error number of the first failed write to standard output. The stream itself keeps only a flag.
int first_failure = 0;

void write_out(std::string_view bytes) {
  errno = 0;
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() &&
                       std::fflush(stdout) == 0;
  if (!written && first_failure == 0) first_failure = errno == 0 ? EIO : errno;
}

[[noreturn]] void fail(int reason) {
  throw Error(ErrorCode::io, "standard output: cannot be written: " + errno_text(reason));
}

}  // namespace

void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0)
      (void)open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  std::signal(SIGPIPE, SIG_IGN);
  // Keeps hwloc from writing warnings about the machine to standard error, also within oneTBB.
  setenv("HWLOC_HIDE_ERRORS", "2", 0);
}

void check_can_print() {
  if ((fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE) == O_RDONLY) fail(EBADF);
}

void print_text(std::string_view text) { write_out(printable_lines(text)); }

void print_bytes(std::string_view bytes) { write_out(bytes); }

void check_printed() {
  if (first_failure != 0) fail(first_failure);
}

void print_note(std::string_view line) { print_error_text("millrace: " + printable(line) + "\n"); }

void print_error_text(std::string_view text) {
  const std::string shown = printable_lines(text);
  (void)std::fwrite(shown.data(), 1, shown.size(), stderr);
}

}  // namespace millrace::cli
