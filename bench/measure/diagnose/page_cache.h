// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

namespace millrace::cli {

/// Size of some files, and how much of it is in the page cache.
struct CachedBytes {
  std::uintmax_t all = 0;
  std::uintmax_t cached = 0;
  /// The cached share, 0 to 1.
  double share() const {
    return all > 0 ? static_cast<double>(cached) / static_cast<double>(all) : 0;
  }
};

/// Queries the kernel (mincore) page by page. For a file that this process neither owns nor may
/// write, Linux reports every page as cached. Throws `Error` (`io`) with the file's name.
CachedBytes cached_bytes(std::span<const std::filesystem::path> files);

/// Writes back the files' dirty pages and asks the kernel to drop all pages. The kernel silently
/// keeps pages that a process has mapped and touched, and all pages of memory file systems: check
/// with `cached_bytes`. Caches below the kernel (of a drive or a hypervisor) are not dropped.
/// Throws `Error` (`io`) with the file's name.
void drop_from_cache(std::span<const std::filesystem::path> files);

/// Whether a file is in a memory file system (tmpfs, ramfs), whose pages cannot be dropped. False
/// if the system does not tell.
bool lies_in_memory(const std::filesystem::path& file);

/// Bytes that this process has fetched from storage so far, including page faults and read-ahead
/// (proc(5), io: read_bytes). Nullopt if the system does not tell. File systems without a block
/// device, such as NFS, may not be counted.
std::optional<std::uint64_t> bytes_from_storage();

}  // namespace millrace::cli
