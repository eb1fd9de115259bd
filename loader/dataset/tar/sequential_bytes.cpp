// SPDX-License-Identifier: Apache-2.0
#include "dataset/tar/sequential_bytes.h"

#include <fcntl.h>
#include <millrace/detail/errno_text.h>
#include <millrace/error.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace millrace {
namespace {

constexpr std::size_t skipped_at_once = std::size_t{64} << 10;

[[noreturn]] void fail_io(const std::string& name, const char* what, int reason) {
  throw Error(ErrorCode::io, name + " " + what + ": " + errno_text(reason));
}

/// Opens a file. If "/dev/stdin" is not a regular file, duplicates its descriptor, because a socket
/// cannot be opened by name.
FileDescriptor open_sequential(const std::string& name) {
  struct stat status {};
  if (name == "/dev/stdin" && ::fstat(STDIN_FILENO, &status) == 0 && !S_ISREG(status.st_mode))
    return FileDescriptor(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
  // O_NONBLOCK keeps the opening of a FIFO from waiting for its writer.
  return FileDescriptor::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

}  // namespace

Interrupter::Interrupter() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) fail_io("an event of the system", "cannot be made", errno);
}

void Interrupter::interrupt() noexcept {
  const std::uint64_t one = 1;
  // The write fails only if the event is already set.
  (void)!::write(event_.get(), &one, sizeof one);
}

void Interrupter::wait_for(int file, const std::string& name) const {
  std::array<pollfd, 2> files{{{file, POLLIN, 0}, {event_.get(), POLLIN, 0}}};
  if (retry_interrupted([&] { return ::poll(files.data(), files.size(), -1); }) < 0)
    fail_io(name, "cannot be read", errno);
  if (files[1].revents != 0) throw Error(ErrorCode::stopped, name + ": reading was interrupted");
}

SequentialBytes::SequentialBytes(const std::string& name, const Interrupter& interrupter)
    : name_(name), interrupter_(interrupter), file_(open_sequential(name)) {
  if (!file_) {
    if (names_no_file(errno))
      throw Error(ErrorCode::not_found, name_ + " cannot be opened: " + errno_text(errno));
    fail_io(name_, "cannot be opened", errno);
  }
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) fail_io(name_, "cannot be read", errno);
  is_regular_ = S_ISREG(status.st_mode);
  if (is_regular_) ::posix_fadvise(file_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
}

std::span<const std::byte> SequentialBytes::read(std::uint64_t offset, std::size_t bytes) {
  if (offset == last_offset_ && bytes <= last_.size()) return std::span(last_).first(bytes);
  last_.resize(bytes);
  last_offset_ = offset;
  last_.resize(read_into(offset, last_));
  return last_;
}

std::size_t SequentialBytes::read_into(std::uint64_t offset, std::span<std::byte> to) {
  skip_to(offset);
  return at_ == offset ? fill(to) : 0;
}

void SequentialBytes::skip_to(std::uint64_t offset) {
  if (offset < at_)
    throw Error(ErrorCode::internal, name_ + ": byte " + std::to_string(offset) +
                                         " was asked for after byte " + std::to_string(at_));
  if (is_regular_ && offset > at_) {
    if (::lseek(file_.get(), static_cast<off_t>(offset), SEEK_SET) < 0)
      fail_io(name_, "cannot be read", errno);
    at_ = offset;
  }
  std::vector<std::byte> skipped(
      static_cast<std::size_t>(std::min<std::uint64_t>(offset - at_, skipped_at_once)));
  while (at_ < offset && !ended_)
    fill(std::span(skipped).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(offset - at_, skipped.size()))));
}

std::size_t SequentialBytes::fill(std::span<std::byte> to) {
  std::size_t done = 0;
  while (done < to.size() && !ended_) {
    if (!is_regular_) interrupter_.wait_for(file_.get(), name_);
    const ssize_t got = ::read(file_.get(), to.data() + done, to.size() - done);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) fail_io(name_, ("cannot be read at byte " + std::to_string(at_)).c_str(), errno);
    ended_ = got == 0;
    done += static_cast<std::size_t>(got);
    at_ += static_cast<std::uint64_t>(got);
  }
  return done;
}

}  // namespace millrace
