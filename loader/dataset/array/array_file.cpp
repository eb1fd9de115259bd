// SPDX-License-Identifier: Apache-2.0
#include "dataset/array/array_file.h"

#include <fcntl.h>
#include <millrace/detail/errno_text.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/read_full.h"

namespace millrace {

std::shared_ptr<const ArrayFile> ArrayFile::open(const std::filesystem::path& path, bool mapped) {
  std::string name = path.string();
  FileDescriptor file = FileDescriptor::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (!file) {
    const int error = errno;
    const bool missing = names_no_file(error);
    throw Error(missing ? ErrorCode::not_found : ErrorCode::io,
                name + (missing ? " does not exist" : " cannot be opened: " + errno_text(error)));
  }
  struct stat status {};
  if (fstat(file.get(), &status) != 0) throw Error(ErrorCode::io, name + ": " + errno_text(errno));
  if (!S_ISREG(status.st_mode)) throw Error(ErrorCode::corrupt, name + " is no file");
  return std::shared_ptr<const ArrayFile>(new ArrayFile(
      std::move(file), static_cast<std::uint64_t>(status.st_size), std::move(name), mapped));
}

ArrayFile::ArrayFile(FileDescriptor file, std::uint64_t bytes, std::string name, bool mapped)
    : file_(std::move(file)), bytes_(bytes), name_(std::move(name)) {
  if (mapped && bytes_ > 0)
    map_ = SigbusSafeMap::make(file_.get(), static_cast<std::size_t>(bytes_), name_, warnings_);
  expect_random_reads(map_.get(), file_.get());
}

std::span<const std::byte> ArrayFile::read(FileRange range, std::vector<std::byte>& buffer) const {
  const auto bytes = static_cast<std::size_t>(range.bytes);
  if (bytes == 0) return {};
  if (map_) return map_->bytes().subspan(static_cast<std::size_t>(range.offset), bytes);
  if (buffer.size() < bytes) buffer.resize(bytes);
  const std::span<std::byte> to = std::span(buffer).first(bytes);
  if (const std::size_t done = read_full(file_.get(), range.offset, to); done < bytes)
    throw Error(ErrorCode::io,
                unreadable_text(
                    name_, range.offset + done,
                    errno == 0 ? "the file ends there: it was made shorter" : errno_text(errno)));
  return to;
}

Status ArrayFile::check_intact(FileRange range) const {
  if (!map_ || range.bytes == 0 || map_->whole()) return Status::ok();
  if (const auto lost = map_->first_lost(map_->bytes().subspan(
          static_cast<std::size_t>(range.offset), static_cast<std::size_t>(range.bytes))))
    return Status::bad(unreadable_text(name_, *lost, "an I/O error, or the file was made shorter"));
  // If the file was shortened, the rest of its last page reads as zeros without a fault.
  struct stat status {};
  if (fstat(file_.get(), &status) != 0) return Status::bad(name_ + ": " + errno_text(errno));
  const auto now = static_cast<std::uint64_t>(status.st_size);
  if (now >= range.offset + range.bytes) return Status::ok();
  return Status::bad(
      unreadable_text(name_, std::max(range.offset, now), "the file was made shorter"));
}

void ArrayFile::read_ahead(std::vector<FileRange> ranges) const {
  millrace::read_ahead(std::move(ranges), map_.get(), file_.get());
}

}  // namespace millrace
