// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

// Reads tars in place by their headers alone. Supports the historic format, ustar (POSIX.1-1988),
// pax (POSIX.1-2001: path and size) and GNU tar (long names, sizes in base 256). Headers are not
// trusted: a header must have the right checksum, and an extended header must be well-formed.

namespace millrace {

/// Damage of a tar, as a clause for messages that name the tar: "the header at byte 512 is
/// damaged".
struct TarDamage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline constexpr std::size_t tar_block_bytes = 512;

/// Returns whether a file with these first bytes begins with a member's header.
bool begins_with_header(std::span<const std::byte> bytes);

/// The bytes of a tar or of a part of it. For one thread.
class TarBytes {
 public:
  virtual ~TarBytes() = default;
  /// Returns these bytes, or as many as exist; valid until the next call. May throw `Error` (`io`).
  virtual std::span<const std::byte> read(std::uint64_t offset, std::size_t bytes) = 0;
};

/// A regular file in a tar.
struct TarMember {
  /// The stored path, without a leading "./".
  std::string path{};
  /// Offset of the member's first header.
  std::uint64_t begin = 0;
  /// Offset and length of its contents.
  std::uint64_t data = 0;
  std::uint64_t bytes = 0;
  /// Offset of the end of its contents, including the padding of the last block.
  std::uint64_t end = 0;
  /// The checksum in its own header.
  std::uint32_t header_checksum = 0;
};

/// Iterates over the members of a tar.
class TarWalk {
 public:
  /// Walks from `begin` to `end`. With `has_end_mark`, `end` is the end of the tar, which a block
  /// of zeros must mark. Further tars may follow that mark, as `cat` writes them, after at most 1
  /// MiB of zeros.
  TarWalk(TarBytes& bytes, std::uint64_t begin, std::uint64_t end, bool has_end_mark)
      : bytes_(bytes), at_(begin), end_(end), has_end_mark_(has_end_mark) {}

  /// Moves to the next regular file. Returns false at the end. Throws `TarDamage` for an invalid
  /// header, for contents beyond the end, for an end without a mark, and for a sparse member, which
  /// is not stored contiguously.
  bool next(TarMember& member);

 private:
  /// Values from extended headers, which apply to the next member.
  struct Extended {
    std::optional<std::string> path{};
    std::optional<std::uint64_t> bytes{};
    bool sparse = false;
  };

  /// Skips blocks of zeros. Returns false if they are the end.
  bool pass_zeros();
  std::string_view extended_text(std::uint64_t offset, std::uint64_t bytes);
  void read_pax(std::string_view text, Extended& extended) const;

  TarBytes& bytes_;
  std::uint64_t at_;
  std::uint64_t end_;
  bool has_end_mark_;
  bool marked_ = false;
};

}  // namespace millrace
