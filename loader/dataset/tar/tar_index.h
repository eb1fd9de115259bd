// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataset/tar/tar_walk.h"

namespace millrace {

/// Where a sample lies in a tar: from the first header of its first member to the end of its last
/// one, in blocks of 512 bytes.
struct SampleBlocks {
  std::uint32_t begin = 0;
  std::uint32_t count = 0;

  std::uint64_t offset() const { return std::uint64_t{begin} * tar_block_bytes; }
  std::uint64_t bytes() const { return std::uint64_t{count} * tar_block_bytes; }
};
/// As far as `SampleBlocks` reaches.
inline constexpr std::uint64_t most_tar_bytes = (std::uint64_t{1} << 32) * tar_block_bytes;

/// What a tar is known by. Who writes to it changes one of these, unless it means not to.
struct TarIdentity {
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
  /// The XXH3-64 of the first header's block, and of the last sample's.
  std::uint64_t first_header = 0;
  std::uint64_t last_header = 0;

  bool operator==(const TarIdentity&) const = default;
};

/// Where the samples of a tar lie, 8 bytes each.
struct TarIndex {
  TarIdentity of{};
  /// Of the samples in order (`fingerprint_with`), each by the names, lengths and header checksums
  /// of its members. Contents that were changed in place are not noticed by it.
  std::uint64_t fingerprint = 0;
  std::vector<SampleBlocks> samples{};
};

/// Whether a member is part of a sample, and of which: the part of its path is `key`. Files without
/// an extension, those whose name begins with a dot, and WebDataset's own ("__meta__.x") are not.
bool is_of_sample(const TarMember& member, std::string_view& key, std::string& extension);

/// Reads all headers of a tar of `bytes` bytes. Consecutive members with one key are a sample.
/// Throws `TarDamage`.
TarIndex scan_tar(TarBytes& tar, std::uint64_t bytes);
/// Its identity, as far as it is in its bytes.
TarIdentity identity_of(TarBytes& tar, const std::vector<SampleBlocks>& samples);

/// Whether a file begins as such an index; false if it cannot be read.
bool is_tar_index(const std::filesystem::path& path);
/// As a file. All numbers are little-endian:
///     8 bytes  "MRmember", then 1, the format, as 8 bytes
///     32 bytes the identity's members in order
///     8 bytes  the fingerprint
///     8 bytes  how many samples there are, n
///     8 n      begin and count of each
///     8 bytes  the XXH3-64 of all before
std::vector<std::byte> packed_index(const TarIndex& index);
/// Nullopt if the bytes are no such file, or damaged: samples lie in the tar, one behind the other.
std::optional<TarIndex> unpack_index(std::span<const std::byte> bytes);

}  // namespace millrace
