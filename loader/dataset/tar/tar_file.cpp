// SPDX-License-Identifier: Apache-2.0
#include "dataset/tar/tar_file.h"

#include <fcntl.h>
#include <millrace/detail/errno_text.h>
#include <millrace/detail/tar_members.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "base/read_full.h"

namespace millrace {
namespace {

using namespace std::string_view_literals;

FileDescriptor open_file(const std::string& name) {
  FileDescriptor file = FileDescriptor::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file) return file;
  const int reason = errno;
  throw Error(names_no_file(reason) ? ErrorCode::not_found : ErrorCode::io,
              name + " cannot be opened: " + errno_text(reason));
}

/// Returns the name of the compression of a file that begins with `begin`; nullptr if unknown.
const char* compression_of(std::string_view begin) {
  constexpr std::pair<std::string_view, const char*> known[] = {{"\x1f\x8b", "gzip"},
                                                                {"BZh", "bzip2"},
                                                                {"\xfd"
                                                                 "7zXZ\0"sv,
                                                                 "xz"},
                                                                {"\x28\xb5\x2f\xfd", "zstd"},
                                                                {"\x04\x22\x4d\x18", "lz4"}};
  for (const auto& [mark, name] : known)
    if (begin.starts_with(mark)) return name;
  return nullptr;
}

std::int64_t modified_ns(const struct stat& status) {
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

}  // namespace

/// The bytes of the whole tar, for reading its headers.
class TarFile::Bytes final : public TarBytes {
 public:
  explicit Bytes(const TarFile& tar) : tar_(tar) {}

  std::span<const std::byte> read(std::uint64_t offset, std::size_t bytes) override {
    bytes = offset < tar_.bytes_ ? std::min<std::uint64_t>(bytes, tar_.bytes_ - offset) : 0;
    if (tar_.map_) return tar_.map_->bytes().subspan(bytes == 0 ? 0 : offset, bytes);
    if (buffer_.size() < bytes) buffer_.resize(bytes);
    return std::span(buffer_).first(tar_.read_at(offset, std::span(buffer_).first(bytes)));
  }

 private:
  const TarFile& tar_;
  std::vector<std::byte> buffer_;
};

Status TarFile::probe_begin(std::span<const std::byte> begin) {
  const std::string_view text(reinterpret_cast<const char*>(begin.data()), begin.size());
  if (const char* compression = compression_of(text))
    return Status::bad(std::string("it is compressed with ") + compression +
                       ", and cannot be read in place; unpack it, or have it packed by "
                       "`millrace pack`");
  return begins_with_header(begin) ? Status::ok() : Status::bad("it has no tar header");
}

Status TarFile::probe(const std::filesystem::path& path) {
  const std::string name = path.string();
  const FileDescriptor file = open_file(name);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0)
    throw Error(ErrorCode::io, name + " cannot be read: " + errno_text(errno));
  if (!S_ISREG(status.st_mode)) return Status::bad("it is not a regular file");
  std::array<std::byte, tar_block_bytes> begin{};
  const std::size_t read = read_full(file.get(), 0, begin);
  if (read < begin.size() && errno != 0)
    throw Error(ErrorCode::io, name + " cannot be read: " + errno_text(errno));
  return probe_begin(std::span(begin).first(read));
}

TarFile::TarFile(const std::filesystem::path& path, bool mapped, std::vector<std::string>& warnings)
    : name_(path.string()) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::corrupt, name_ + " cannot be read as a tar: " + why, "", {}, why);
  };
  file_ = open_file(name_);
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0)
    throw Error(ErrorCode::io, name_ + " cannot be read: " + errno_text(errno));
  if (!S_ISREG(status.st_mode)) refuse("it is not a regular file");
  if (status.st_size == 0) refuse("it is empty");
  bytes_ = static_cast<std::uint64_t>(status.st_size);
  modified_ns_ = modified_ns(status);
  if (mapped)
    map_ = SigbusSafeMap::make(file_.get(), static_cast<std::size_t>(bytes_), name_, warnings);
  expect_random_reads(map_.get(), file_.get());
  if (map_) file_ = {};
  Bytes tar(*this);
  try {
    const auto begin = tar.read(0, tar_block_bytes);
    const bool is_empty_tar =
        std::ranges::all_of(begin, [](std::byte byte) { return byte == std::byte{0}; });
    if (const Status found = probe_begin(begin); !found.is_ok() && !is_empty_tar)
      throw TarDamage(found.reason());
    if (!take_stored_index(tar, warnings)) index_ = scan_tar(tar, bytes_);
  } catch (const TarDamage& damage) {
    if (const Status kept = map_ ? check_intact(map_->bytes()) : Status::ok(); !kept.is_ok())
      throw Error(ErrorCode::io, kept.reason());
    refuse(damage.what());
  }
  if (const Status kept = map_ ? check_intact(map_->bytes()) : Status::ok(); !kept.is_ok())
    throw Error(ErrorCode::io, kept.reason());
  index_.of.bytes = bytes_;
  index_.of.modified_ns = modified_ns_;
}

bool TarFile::take_stored_index(Bytes& tar, std::vector<std::string>& warnings) {
  const std::string stored = tar_members_path(name_).string();
  const auto refuse = [&](const std::string& why) {
    warnings.push_back(stored + " " + why +
                       "; all headers were read instead. `millrace index` "
                       "makes a new one.");
    return false;
  };
  const FileDescriptor file =
      FileDescriptor::open(stored.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (!file) return errno == ENOENT ? false : refuse("cannot be opened: " + errno_text(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return refuse("cannot be read: " + errno_text(errno));
  // Upper limit for a valid index: a sample takes at least one block of the tar.
  const std::uint64_t most = bytes_ / tar_block_bytes * sizeof(SampleBlocks) + 4096;
  if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) > most)
    return refuse("is not a tar index, or is damaged");
  std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
  const std::size_t read = read_full(file.get(), 0, bytes);
  if (read < bytes.size() && errno != 0) return refuse("cannot be read: " + errno_text(errno));
  std::optional<TarIndex> index = unpack_index(std::span(bytes).first(read));
  if (!index) return refuse("is not a tar index, or is damaged");
  TarIdentity now = identity_of(tar, index->samples);
  now.bytes = bytes_;
  now.modified_ns = modified_ns_;
  if (index->of != now)
    return refuse("belongs to another tar, or to this one before it was changed");
  index_ = std::move(*index);
  return true;
}

FileRange TarFile::locate(std::uint64_t sample) const {
  const SampleBlocks& blocks = index_.samples[static_cast<std::size_t>(sample)];
  // At the end of the file, the padding of the last block may be missing.
  return {blocks.offset(), std::min<std::size_t>(blocks.bytes(), bytes_ - blocks.offset())};
}

std::span<const std::byte> TarFile::read(std::uint64_t sample,
                                         std::vector<std::byte>& buffer) const {
  const auto [offset, bytes] = locate(sample);
  if (map_) return map_->bytes().subspan(static_cast<std::size_t>(offset), bytes);
  if (buffer.size() < bytes) buffer.resize(bytes);
  const std::span<std::byte> to = std::span(buffer).first(bytes);
  const std::size_t done = read_at(offset, to);
  if (done < bytes)
    throw Error(ErrorCode::io,
                unreadable_text(name_, offset + done, "the file ends there: it was made shorter"));
  return to;
}

Status TarFile::check_intact(std::span<const std::byte> bytes) const {
  if (bytes.empty() || !map_ || map_->whole()) return Status::ok();
  const std::span<const std::byte> all = map_->bytes();
  const auto offset = static_cast<std::size_t>(bytes.data() - all.data());
  const std::size_t end = offset + bytes.size();
  // If the file was shortened, the rest of its last page reads as zeros without a fault. The page
  // after it is then lost, so touching that page detects the truncation.
  const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t behind = (end + page_bytes - 1) / page_bytes * page_bytes;
  constexpr const char* reason = "an I/O error, or the file was made shorter";
  if (behind >= all.size()) {
    const std::size_t lost = map_->first_lost(bytes).value_or(offset);
    return Status::bad(unreadable_text(name_, lost, reason));
  }
  (void)*const_cast<const volatile std::byte*>(all.data() + behind);
  const auto lost = map_->first_lost(all.subspan(offset, behind + 1 - offset));
  return lost ? Status::bad(unreadable_text(name_, std::min<std::size_t>(*lost, end), reason))
              : Status::ok();
}

void TarFile::read_ahead(std::vector<FileRange> ranges) const {
  millrace::read_ahead(std::move(ranges), map_.get(), file_.get());
}

std::size_t TarFile::read_at(std::uint64_t offset, std::span<std::byte> to) const {
  const std::size_t read = read_full(file_.get(), offset, to);
  if (read < to.size() && errno != 0)
    throw Error(ErrorCode::io, unreadable_text(name_, offset + read, errno_text(errno)));
  return read;
}

}  // namespace millrace
