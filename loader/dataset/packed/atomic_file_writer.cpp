// SPDX-License-Identifier: Apache-2.0
#include "dataset/packed/atomic_file_writer.h"

#include <millrace/detail/errno_text.h>
#include <millrace/error.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include "dataset/packed/dataset_lock.h"

namespace millrace {

AtomicFileWriter::AtomicFileWriter(std::filesystem::path path,
                                   bool (*may_replace)(const std::filesystem::path&),
                                   const char* what)
    : path_(std::move(path)), beside_(path_.string() + ".replacement") {
  if (std::filesystem::exists(path_) && !may_replace(path_))
    throw Error(ErrorCode::already_exists, path_.string() + " exists and is not " + what);
  // The file of a killed writer is not continued. It is deleted and written again from the
  // beginning.
  if (const FileDescriptor left = lock_existing(beside_)) ::unlink(beside_.c_str());
  file_ = create_locked(beside_);
}

AtomicFileWriter::~AtomicFileWriter() {
  if (file_) ::unlink(beside_.c_str());
}

void AtomicFileWriter::try_to(int error) const {
  if (error != 0)
    throw Error(ErrorCode::io, path_.string() + " cannot be written: " + errno_text(error));
}

void AtomicFileWriter::write(std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    try_to(written > 0 ? 0 : written < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFileWriter::replace() {
  try_to(retry_interrupted([&] { return ::fsync(file_.get()); }) == 0 ? 0 : errno);
  try_to(::rename(beside_.c_str(), path_.c_str()) == 0 ? 0 : errno);
  file_ = {};
}

}  // namespace millrace
