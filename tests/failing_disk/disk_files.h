// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>

namespace millrace::testing {

/// The files of the disk, and their unreadable pages.
struct DiskFiles {
  static constexpr std::uint64_t records = 160;
  static constexpr std::size_t page_bytes = 4096;
  static constexpr std::size_t own_pages = 4;
  static constexpr std::size_t own_lost_page = 2;

  std::filesystem::path folder;
  /// Unreadable pages of the dataset.
  std::set<std::uint64_t> lost_pages{};
  /// Records that are bad without these pages.
  std::set<std::uint64_t> bad_records{};

  std::filesystem::path dataset() const { return folder / "a.lmdb"; }
  /// A file that is not a dataset.
  std::filesystem::path own() const { return folder / "own"; }

  /// Reads what `write_disk_files` wrote.
  static DiskFiles read(const std::filesystem::path& folder);
};

/// Writes the files of a disk into a folder, and the list of pages that are to be unreadable
/// ("lost_pages", for numa_vm.sh): some in the middle of large records, and one with small records.
/// A copy with zeros in these pages shows which records are bad without them.
void write_disk_files(const std::filesystem::path& folder);

}  // namespace millrace::testing
