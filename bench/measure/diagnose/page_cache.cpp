// SPDX-License-Identifier: Apache-2.0
#include "measure/diagnose/page_cache.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <millrace/detail/errno_text.h>
#include <millrace/detail/interrupted.h>
#include <millrace/error.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>
#include <vector>

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

/// Bytes that are mapped and queried at a time, since a dataset may be too large to map at once.
constexpr std::uintmax_t window_bytes = std::uintmax_t{1} << 30;

[[noreturn]] void throw_io(const fs::path& path, const char* what, int reason) {
  throw Error(ErrorCode::io, path.string() + ": " + what + ": " + errno_text(reason));
}

/// A file opened for reading.
class OpenFile {
 public:
  explicit OpenFile(const fs::path& path)
      : path_(path), number_(retry_interrupted([&] {
          return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        })) {
    if (number_ < 0) throw_io(path, "cannot be opened", errno);
  }
  ~OpenFile() { ::close(number_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int number() const { return number_; }
  std::uintmax_t bytes() const {
    struct stat status {};
    if (fstat(number_, &status) != 0) throw_io(path_, "cannot be read", errno);
    if (!S_ISREG(status.st_mode))
      throw Error(ErrorCode::io,
                  path_.string() + " is not a file, so none of its pages can be cached");
    return static_cast<std::uintmax_t>(status.st_size);
  }

 private:
  const fs::path& path_;
  int number_;
};

/// Returns the number of cached pages among the `bytes` bytes from `offset` on. `offset` is a
/// multiple of the page size.
std::uintmax_t cached_pages(const OpenFile& file, const fs::path& path, std::uintmax_t offset,
                            std::size_t bytes, std::size_t page_bytes) {
  // The map is private, since some file systems refuse shared maps (FUSE with direct I/O).
  void* window =
      mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.number(), static_cast<off_t>(offset));
  if (window == MAP_FAILED) throw_io(path, "cannot be mapped", errno);
  std::vector<unsigned char> pages((bytes + page_bytes - 1) / page_bytes);
  const int failed = mincore(window, bytes, pages.data()) == 0 ? 0 : errno;
  munmap(window, bytes);
  if (failed != 0) throw_io(path, "the kernel does not tell which pages are cached", failed);
  return static_cast<std::uintmax_t>(
      std::ranges::count_if(pages, [](unsigned char page) { return (page & 1) != 0; }));
}

}  // namespace

CachedBytes cached_bytes(std::span<const fs::path> files) {
  const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  CachedBytes sum;
  for (const fs::path& path : files) {
    const OpenFile file(path);
    const std::uintmax_t all = file.bytes();
    std::uintmax_t pages = 0;
    for (std::uintmax_t offset = 0; offset < all; offset += window_bytes)
      pages +=
          cached_pages(file, path, offset,
                       static_cast<std::size_t>(std::min(window_bytes, all - offset)), page_bytes);
    sum.all += all;
    sum.cached += std::min(all, pages * page_bytes);  // the last page may be longer than the file
  }
  return sum;
}

void drop_from_cache(std::span<const fs::path> files) {
  for (const fs::path& path : files) {
    const OpenFile file(path);
    if (retry_interrupted([&] { return fsync(file.number()); }) != 0)
      throw_io(path, "cannot be written back", errno);
    if (const int failed = posix_fadvise(file.number(), 0, 0, POSIX_FADV_DONTNEED))
      throw_io(path, "its pages cannot be given up", failed);
  }
}

bool lies_in_memory(const fs::path& file) {
  struct statfs status {};
  return statfs(file.c_str(), &status) == 0 &&
         (status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC);
}

std::optional<std::uint64_t> bytes_from_storage() {
  std::ifstream io("/proc/self/io");
  std::string name;
  for (std::uint64_t value = 0; io >> name >> value;)
    if (name == "read_bytes:") return value;
  return std::nullopt;
}

}  // namespace millrace::cli
