// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

namespace millrace::cli {

/// How much of some files lies in the page cache.
struct CachedBytes {
  std::uintmax_t all = 0;
  std::uintmax_t cached = 0;
  /// 0 to 1.
  double share() const {
    return all > 0 ? static_cast<double>(cached) / static_cast<double>(all) : 0;
  }
};

/// Asks the kernel (mincore), page by page. Of a file that this process neither owns nor may write,
/// Linux says that all of it is cached. Throws `Error` (`io`) that names the file.
CachedBytes cached_bytes(std::span<const std::filesystem::path> files);

/// Writes the files' changed pages back and asks the kernel to give up all of them. It keeps,
/// without an error, those that a process has mapped and touched, and all files of a memory file
/// system: ask `cached_bytes` for what is left. Caches below the kernel (the drive's, a
/// hypervisor's) stay as they are. Throws `Error` (`io`) that names the file.
void drop_from_cache(std::span<const std::filesystem::path> files);

/// Whether a file lies in a file system that is memory itself (tmpfs, ramfs), so that its pages
/// cannot be given up. False if the system does not tell.
bool lies_in_memory(const std::filesystem::path& file);

/// Bytes that this process has had fetched from storage so far, page faults and read-ahead included
/// (proc(5), io: read_bytes). Nullopt if the system does not tell; file systems without a block
/// device, such as NFS, may not count.
std::optional<std::uint64_t> bytes_from_storage();

}  // namespace millrace::cli
