// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

// Reading of tars in place, by the headers alone: ustar (POSIX.1-1988) and its forerunner, the pax
// format (POSIX.1-2001: path and size) and GNU's (long names, sizes in base 256). Nothing is
// believed of a header but what its checksum is right for, and nothing of an extended one but what
// lies in it.

namespace millrace {

/// What is wrong with a tar, for a message that names it: "the header at byte 512 is damaged".
struct TarDamage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline constexpr std::size_t tar_block_bytes = 512;

/// Whether these bytes, the first ones of a file, begin with a member's header.
bool begins_with_header(std::span<const std::byte> bytes);

/// The bytes of a tar, or of a part of it. For one thread.
class TarBytes {
 public:
  virtual ~TarBytes() = default;
  /// These bytes, or as many as there are; valid until the next call. May throw `Error` (`io`).
  virtual std::span<const std::byte> read(std::uint64_t offset, std::size_t bytes) = 0;
};

/// A regular file in a tar.
struct TarMember {
  /// As it is stored, without "./" before it.
  std::string path{};
  /// Where its headers begin.
  std::uint64_t begin = 0;
  /// Where its contents begin, and their length.
  std::uint64_t data = 0;
  std::uint64_t bytes = 0;
  /// Behind its contents and what fills their last block.
  std::uint64_t end = 0;
  /// The checksum in its own header.
  std::uint32_t header_checksum = 0;
};

/// Walks the members of a tar.
class TarWalk {
 public:
  /// From `begin` to `end`; with `has_end_mark` to the tar's end, which must be marked by a block
  /// of zeros. Other tars may follow behind that, as `cat` joins them, within 1 MiB.
  TarWalk(TarBytes& bytes, std::uint64_t begin, std::uint64_t end, bool has_end_mark)
      : bytes_(bytes), at_(begin), end_(end), has_end_mark_(has_end_mark) {}

  /// The next regular file; false at the end. Throws `TarDamage` for what is no header, for
  /// contents that go beyond the end, for an end without a mark, and for a sparse member, whose
  /// contents are not as they lie.
  bool next(TarMember& member);

 private:
  /// What extended headers say of the member behind them.
  struct Extended {
    std::optional<std::string> path{};
    std::optional<std::uint64_t> bytes{};
    bool sparse = false;
  };

  /// Goes behind blocks of zeros; false if that is the end.
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
