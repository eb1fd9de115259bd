// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>

namespace millrace::testing {

/// What is on the disk, and what of it cannot be read.
struct DiskFiles {
  static constexpr std::uint64_t records = 160;
  static constexpr std::size_t page_bytes = 4096;
  static constexpr std::size_t own_pages = 4;
  static constexpr std::size_t own_lost_page = 2;

  std::filesystem::path folder;
  /// Of the dataset.
  std::set<std::uint64_t> lost_pages{};
  /// Those that are bad without these pages.
  std::set<std::uint64_t> bad_records{};

  std::filesystem::path dataset() const { return folder / "a.lmdb"; }
  /// A file that is no dataset.
  std::filesystem::path own() const { return folder / "own"; }

  /// As `write_disk_files` wrote it.
  static DiskFiles read(const std::filesystem::path& folder);
};

/// Writes the files of a disk into a folder, and which of their pages are to be lost there
/// ("lost_pages", for numa_vm.sh): some in the middle of large records, and one that has small
/// records. Which records are bad without them is found by a copy that has zeros there.
void write_disk_files(const std::filesystem::path& folder);

}  // namespace millrace::testing
