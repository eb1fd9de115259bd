// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/owner_process.h"

namespace millrace {

/// The beginning of a file, mapped for reading. Pages can be lost while they are read, by an I/O
/// error or because the file is truncated. Such a read raises SIGBUS, which would end the process.
/// While such maps exist, a handler of that signal replaces the lost page by a page of zeros and
/// marks it. Callers must check after each use of the bytes whether they were lost.
///
/// The handler is installed with the first map. It forwards faults at other addresses, and signals
/// that are not faults, to the handler that the process had before. It is removed with the last
/// map, unless the program has installed another handler since, which may forward to it.
///
/// All methods may be called by several threads at the same time. In a child of fork() inherited
/// maps are guarded, too; their destructors free nothing there.
class SigbusSafeMap {
 public:
  /// Maps the file shared, or privately if its file system refuses shared maps. Throws `Error`
  /// (`io`) if the file `name` cannot be mapped. `bytes` > 0 is the file's length.
  SigbusSafeMap(int file, std::size_t bytes, const std::string& name);
  /// Returns a map, or null if the file system cannot map files. In that case, and for a private
  /// map, it adds a sentence to `warnings` that names the file's folder. Throws for other failures.
  static std::unique_ptr<const SigbusSafeMap> make(int file, std::size_t bytes,
                                                   const std::string& name,
                                                   std::vector<std::string>& warnings);
  ~SigbusSafeMap();
  SigbusSafeMap(const SigbusSafeMap&) = delete;
  SigbusSafeMap& operator=(const SigbusSafeMap&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

  /// Returns false once any page was lost or the file was truncated. Then bytes that were read may
  /// have been zeros: those of lost pages, and those behind the file's new end in its last page,
  /// which raise no fault.
  bool whole() const;
  /// Offset in the file of the first lost page within `part` of the map; nullopt if all pages are
  /// intact.
  std::optional<std::size_t> first_lost(std::span<const std::byte> part) const;

 private:
  OwnerProcess owner_;
  /// Entry of this map in the handler's table.
  struct GuardedRange* range_;
  std::span<const std::byte> bytes_;
  bool private_ = false;
  /// The file's last byte that is not 0, searched in its last page only; if that page is all zeros,
  /// one byte of it. If the file is truncated anywhere, this byte is lost or becomes 0.
  const std::byte* last_ = nullptr;
  std::byte last_value_{};
};

}  // namespace millrace
