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

/// Position of a sample in a tar, in blocks of 512 bytes: from the first header of its first member
/// to the end of its last member.
struct SampleBlocks {
  std::uint32_t begin = 0;
  std::uint32_t count = 0;

  std::uint64_t offset() const { return std::uint64_t{begin} * tar_block_bytes; }
  std::uint64_t bytes() const { return std::uint64_t{count} * tar_block_bytes; }
};
/// The longest tar that `SampleBlocks` can address.
inline constexpr std::uint64_t max_tar_bytes = (std::uint64_t{1} << 32) * tar_block_bytes;

/// Identity of a tar. Any change of the tar also changes one of these values, unless the writer
/// restores them on purpose.
struct TarIdentity {
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
  /// The XXH3-64 of the first header block in the tar, and of the last sample's first header block.
  std::uint64_t first_header = 0;
  std::uint64_t last_header = 0;

  bool operator==(const TarIdentity&) const = default;
};

/// Positions of the samples in a tar, 8 bytes each.
struct TarIndex {
  TarIdentity of{};
  /// Fingerprint of the samples in order (`fingerprint_with`). It covers the names, lengths and
  /// header checksums of the samples' members. So it does not detect a change of contents in place.
  std::uint64_t fingerprint = 0;
  std::vector<SampleBlocks> samples{};
};

/// Returns whether a member belongs to a sample. If so, `key` receives the part of its path that
/// names the sample. Members without an extension, with a name that begins with a dot, and
/// WebDataset's own ("__meta__.x") do not belong to one.
bool is_of_sample(const TarMember& member, std::string_view& key, std::string& extension);

/// Reads all headers of a tar of `bytes` bytes. Consecutive members with the same key form a
/// sample. Throws `TarDamage`.
TarIndex scan_tar(TarBytes& tar, std::uint64_t bytes);
/// Returns the part of the identity that follows from the tar's bytes: the two header hashes.
TarIdentity identity_of(TarBytes& tar, const std::vector<SampleBlocks>& samples);

/// Returns whether a file begins like an index; false if it cannot be read.
bool is_tar_index(const std::filesystem::path& path);
/// Serializes an index as a file. All numbers are little-endian:
///     8 bytes  "MRmember";
///     8 bytes  1, the format;
///     32 bytes the identity's members in order;
///     8 bytes  the fingerprint;
///     8 bytes  n, the number of samples;
///     8 n      begin and count of each sample;
///     8 bytes  the XXH3-64 of the bytes before.
std::vector<std::byte> packed_index(const TarIndex& index);
/// Parses an index. Returns nullopt if the bytes are not an index, are damaged, or list samples
/// that overlap, are out of order or lie beyond the end of the tar.
std::optional<TarIndex> unpack_index(std::span<const std::byte> bytes);

}  // namespace millrace
