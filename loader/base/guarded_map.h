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

/// The beginning of a file, mapped for reading. Pages of it can be lost while it is read, by an I/O
/// error or because the file is made shorter. That would end the process by SIGBUS, but while there
/// are such maps a handler of that signal puts a page of zeros in the lost one's place and marks
/// it: so whoever has used bytes of the map asks afterwards whether they were lost.
///
/// The handler comes with the first map. It passes every fault elsewhere, and signals that are no
/// faults, on to the one that the process had before. With the last map it goes, unless the program
/// has installed another one since, which may have kept it as its own earlier one.
///
/// All methods may be called from any thread at once. In a child of fork() maps that it inherits
/// are guarded, too; their ends free nothing there.
class GuardedMap {
 public:
  /// Maps the file shared, or privately where its file system refuses shared maps. Throws `Error`
  /// (`io`) if the file `name` cannot be mapped. `bytes` > 0; the file is that long.
  GuardedMap(int file, std::size_t bytes, const std::string& name);
  /// A map, or null where the file system cannot map files. For that, and for a private map,
  /// `warnings` gets a sentence that names the file's folder. Throws for other failures.
  static std::unique_ptr<const GuardedMap> make(int file, std::size_t bytes,
                                                const std::string& name,
                                                std::vector<std::string>& warnings);
  ~GuardedMap();
  GuardedMap(const GuardedMap&) = delete;
  GuardedMap& operator=(const GuardedMap&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

  /// False once any page was lost or the file was made shorter. Then bytes that were read may have
  /// been zeros: those of lost pages, and those behind the file's new end in its last page, which
  /// no fault tells of.
  bool whole() const;
  /// Where the first page that was lost begins within `part` of the map, as an offset in the file.
  std::optional<std::size_t> first_lost(std::span<const std::byte> part) const;

 private:
  OwnerProcess owner_;
  /// What the handler knows of it.
  struct MapPlace* place_;
  std::span<const std::byte> bytes_;
  bool private_ = false;
  /// The last byte of the file that is not 0, or one of its last page if all of that are: whatever
  /// is cut off the file, this byte is lost or becomes 0.
  const std::byte* last_ = nullptr;
  std::byte last_value_{};
};

}  // namespace millrace
