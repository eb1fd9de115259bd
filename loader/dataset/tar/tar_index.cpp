// SPDX-License-Identifier: Apache-2.0
#include "dataset/tar/tar_index.h"

#include <millrace/dataset.h>
#include <millrace/detail/tar_members.h>
#include <millrace/detail/webdataset_sample.h>
#include <xxhash.h>

#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "base/read_full.h"

namespace millrace {
namespace {

static_assert(std::endian::native == std::endian::little && sizeof(SampleBlocks) == 8);

constexpr std::array<char, 8> index_mark = {'M', 'R', 'm', 'e', 'm', 'b', 'e', 'r'};
constexpr std::uint64_t members_format = 1;
/// Bytes before the samples. With the trailing checksum, this is the length of an empty index.
constexpr std::size_t head_bytes = 8 * sizeof(std::uint64_t);

/// Extends a sample's hash by a member.
std::uint64_t hash_with(std::uint64_t hash, const TarMember& member) {
  const std::uint64_t numbers[] = {member.bytes, member.header_checksum};
  return XXH3_64bits_withSeed(numbers, sizeof numbers,
                              XXH3_64bits_withSeed(member.path.data(), member.path.size(), hash));
}

std::uint64_t header_hash(TarBytes& tar, std::uint64_t offset) {
  const auto block = tar.read(offset, tar_block_bytes);
  return XXH3_64bits(block.data(), block.size());
}

}  // namespace

bool is_of_sample(const TarMember& member, std::string_view& key, std::string& extension) {
  const std::string_view path = member.path;
  if (is_hidden_member(path)) return false;
  MemberName name = parse_member_name(path);
  const bool is_webdatasets_own =
      name.key.starts_with("__") && name.key.ends_with("__") && name.key.find('/') == name.key.npos;
  if (name.extension.empty() || is_webdatasets_own) return false;
  key = name.key;
  extension = std::move(name.extension);
  return true;
}

TarIdentity identity_of(TarBytes& tar, const std::vector<SampleBlocks>& samples) {
  return {.first_header = header_hash(tar, 0),
          .last_header = samples.empty() ? 0 : header_hash(tar, samples.back().offset())};
}

TarIndex scan_tar(TarBytes& tar, std::uint64_t bytes) {
  if (bytes > max_tar_bytes) throw TarDamage("it is longer than 2 TiB; split it");
  TarIndex index;
  TarWalk walk(tar, 0, bytes, true);
  TarMember member;
  std::string sample;
  std::string extension;
  std::string_view key;
  std::uint64_t hash = 0;
  const auto end_sample = [&] {
    if (!index.samples.empty()) index.fingerprint = fingerprint_with(index.fingerprint, hash);
    hash = 0;
  };
  while (walk.next(member)) {
    if (!is_of_sample(member, key, extension)) continue;
    if (index.samples.empty() || sample != key) {
      end_sample();
      sample = key;
      index.samples.push_back(
          {.begin = static_cast<std::uint32_t>(member.begin / tar_block_bytes)});
    }
    hash = hash_with(hash, member);
    SampleBlocks& blocks = index.samples.back();
    const std::uint64_t end = (member.end + tar_block_bytes - 1) / tar_block_bytes;
    blocks.count = static_cast<std::uint32_t>(end - blocks.begin);
  }
  end_sample();
  index.of = identity_of(tar, index.samples);
  return index;
}

std::filesystem::path tar_members_path(const std::filesystem::path& tar) {
  return resolved(tar).string() + ".members";
}

bool is_tar_index(const std::filesystem::path& path) { return begins_with(path, index_mark); }

std::vector<std::byte> packed_index(const TarIndex& index) {
  const std::uint64_t head[] = {
      members_format,        index.of.bytes,       static_cast<std::uint64_t>(index.of.modified_ns),
      index.of.first_header, index.of.last_header, index.fingerprint,
      index.samples.size()};
  static_assert(sizeof index_mark + sizeof head == head_bytes);
  const std::size_t samples_bytes = index.samples.size() * sizeof(SampleBlocks);
  std::vector<std::byte> bytes(head_bytes + samples_bytes + sizeof(std::uint64_t));
  std::memcpy(bytes.data(), index_mark.data(), sizeof index_mark);
  std::memcpy(bytes.data() + sizeof index_mark, head, sizeof head);
  if (samples_bytes > 0)
    std::memcpy(bytes.data() + head_bytes, index.samples.data(), samples_bytes);
  const std::uint64_t checksum = XXH3_64bits(bytes.data(), head_bytes + samples_bytes);
  std::memcpy(bytes.data() + head_bytes + samples_bytes, &checksum, sizeof checksum);
  return bytes;
}

std::optional<TarIndex> unpack_index(std::span<const std::byte> bytes) {
  std::array<std::uint64_t, 7> head{};
  constexpr std::size_t checksum_bytes = sizeof(std::uint64_t);
  if (bytes.size() < head_bytes + checksum_bytes ||
      std::memcmp(bytes.data(), index_mark.data(), sizeof index_mark) != 0)
    return {};
  std::memcpy(head.data(), bytes.data() + sizeof index_mark, sizeof head);
  const std::size_t samples_bytes = bytes.size() - head_bytes - checksum_bytes;
  std::uint64_t checksum = 0;
  std::memcpy(&checksum, bytes.data() + head_bytes + samples_bytes, sizeof checksum);
  if (head[0] != members_format || samples_bytes % sizeof(SampleBlocks) != 0 ||
      head[6] != samples_bytes / sizeof(SampleBlocks) ||
      checksum != XXH3_64bits(bytes.data(), head_bytes + samples_bytes))
    return {};
  TarIndex index{.of = {.bytes = head[1],
                        .modified_ns = static_cast<std::int64_t>(head[2]),
                        .first_header = head[3],
                        .last_header = head[4]},
                 .fingerprint = head[5],
                 .samples = std::vector<SampleBlocks>(static_cast<std::size_t>(head[6]))};
  if (samples_bytes > 0)
    std::memcpy(index.samples.data(), bytes.data() + head_bytes, samples_bytes);
  // The positions are checked despite the valid checksum, because anyone can compute a checksum.
  std::uint64_t end = 0;
  for (const SampleBlocks& sample : index.samples) {
    if (sample.offset() < end || sample.count == 0) return {};
    end = sample.offset() + sample.bytes();
  }
  if (end > (index.of.bytes + tar_block_bytes - 1) / tar_block_bytes * tar_block_bytes) return {};
  return index;
}

}  // namespace millrace
