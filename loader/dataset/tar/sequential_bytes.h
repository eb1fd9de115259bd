// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "dataset/tar/tar_walk.h"

namespace millrace {

/// Interrupts the present and all later reads of another thread.
class Interrupter {
 public:
  /// Throws `Error` (`io`).
  Interrupter();
  void interrupt() noexcept;
  /// Waits until a file can be read. Throws `Error` (`stopped`) when interrupted, `io`.
  void wait_for(int file, const std::string& name) const;

 private:
  FileDescriptor event_;
};

/// The bytes of a file or pipe that is read from front to back. For one thread.
class SequentialBytes final : public TarBytes {
 public:
  /// Opens a file. Does not wait for the writer of a FIFO. `interrupter` must outlive this object.
  /// Throws `Error` (`not_found`, `io`).
  SequentialBytes(const std::string& name, const Interrupter& interrupter);

  /// Offsets must not decrease, except that the last bytes may be read again. Skips the bytes
  /// between. Fewer bytes are returned only at the end of the file.
  std::span<const std::byte> read(std::uint64_t offset, std::size_t bytes) override;
  /// Reads into the caller's memory. Skips the bytes before `offset`; no byte from `offset` on may
  /// have been read yet. Returns the number of bytes read, fewer only at the end of the file.
  std::size_t read_into(std::uint64_t offset, std::span<std::byte> to);

 private:
  void skip_to(std::uint64_t offset);
  std::size_t fill(std::span<std::byte> to);

  const std::string name_;
  const Interrupter& interrupter_;
  FileDescriptor file_;
  bool is_regular_ = false;
  bool ended_ = false;
  /// Offset of the next byte in the file.
  std::uint64_t at_ = 0;
  /// The bytes that `read` returned last, and their offset.
  std::vector<std::byte> last_;
  std::uint64_t last_offset_ = 0;
};

}  // namespace millrace
