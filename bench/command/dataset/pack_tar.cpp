// SPDX-License-Identifier: Apache-2.0
#include "command/dataset/pack_tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/core.h>
#include <millrace/detail/errno_text.h>
#include <millrace/detail/interrupted.h>
#include <millrace/detail/webdataset_sample.h>
#include <millrace/error.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "command/dataset/images/pack_image.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;
using ArchiveHandle = std::unique_ptr<archive, ArchiveDeleter>;

constexpr std::size_t block_bytes = 512;

[[noreturn]] void throw_unread(const fs::path& tar, int error) {
  throw Error(ErrorCode::io, tar.string() + " cannot be read: " + errno_text(error));
}

/// Throws libarchive's error: `io` for a system error, else `corrupt` with the fault of the tar.
[[noreturn]] void throw_unreadable(const fs::path& tar, archive* opened, const char* what,
                                   const char* advice) {
  const int error = archive_errno(opened);
  // libarchive itself uses these two error numbers for files that are not tars.
  if (error > 0 && error != EILSEQ && error != EINVAL) throw_unread(tar, error);
  const char* reason = archive_error_string(opened);
  throw Error(ErrorCode::corrupt, fmt::format("{} {}: {}{}", tar.string(), what,
                                              reason ? reason : "no reason", advice));
}

[[noreturn]] void throw_cut(const fs::path& tar, archive* opened) {
  throw_unreadable(tar, opened, "cannot be read to its end as a tar", "; copy it again");
}

ArchiveHandle open_tar(const fs::path& tar) {
  ArchiveHandle opened(archive_read_new());
  archive_read_support_format_tar(opened.get());
  archive_read_support_filter_gzip(opened.get());
  archive_read_support_filter_bzip2(opened.get());
  archive_read_support_filter_xz(opened.get());
  archive_read_support_filter_zstd(opened.get());
  // With this option, names are bytes in any locale.
  archive_read_set_options(opened.get(), "hdrcharset=BINARY");
  archive_read_set_format_option(opened.get(), "tar", "read_concatenated_archives", "1");
  constexpr std::size_t read_bytes = std::size_t{1} << 18;
  if (archive_read_open_filename(opened.get(), tar.c_str(), read_bytes) != ARCHIVE_OK)
    throw_unreadable(tar, opened.get(), "is neither a folder nor a tar that can be read", "");
  return opened;
}

/// Returns the next member; null at the end.
archive_entry* next_member(const fs::path& tar, archive* opened) {
  archive_entry* entry = nullptr;
  const int code = archive_read_next_header(opened, &entry);
  if (code == ARCHIVE_EOF) return nullptr;
  if (code != ARCHIVE_OK && code != ARCHIVE_WARN) throw_cut(tar, opened);
  return entry;
}

std::string name_of(archive_entry* entry) {
  const char* name = archive_entry_pathname(entry);
  return std::string(without_here(name == nullptr ? "" : name));
}

/// Returns a member's size as its header states it. libarchive does not check it: damaged sparse
/// members may have a negative size.
std::int64_t member_bytes(const fs::path& tar, archive_entry* entry) {
  const std::int64_t size = archive_entry_size(entry);
  if (size < 0)
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: the header of member {} is damaged (size {}, expected 0 or more); "
                            "copy it again",
                            tar.string(), name_of(entry), size));
  return size;
}

std::vector<std::byte> read_data(const fs::path& tar, archive* opened, std::int64_t size) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  // Holes at the end are not read; the bytes are already zero.
  if (archive_read_data(opened, bytes.data(), bytes.size()) < 0) throw_cut(tar, opened);
  return bytes;
}

// Checks the end mark of a plain tar: libarchive accepts a tar that is truncated between two
// members. The end of a compressed tar is marked by its compression.
void check_end_mark(const fs::path& tar, archive* opened) {
  if (archive_filter_count(opened) > 1) return;
  std::array<char, block_bytes> last{};
  auto file = open_stream<std::ifstream>(tar, std::ios::binary);
  if (!file) throw_unread(tar, errno);
  file.seekg(-static_cast<std::streamoff>(last.size()), std::ios::end);
  file.read(last.data(), last.size());
  if (file.bad()) throw_unread(tar, errno);
  if (!file || std::ranges::any_of(last, [](char byte) { return byte != 0; }))
    throw Error(ErrorCode::corrupt,
                fmt::format("{} ends without a tar's end mark: it was cut short; copy it again",
                            tar.string()));
}

/// A sample whose members are being read.
struct TarSample {
  std::string key;
  std::optional<std::string> image;
  std::uint64_t image_member = 0;
  std::optional<std::string> cls;
  std::optional<std::string> json;
  /// The reason why the sample cannot be packed; empty if it can.
  std::string reason;

  void refuse(const std::string& why) {
    if (reason.empty()) reason = why;
  }
};

std::optional<std::int64_t> label_of(TarSample& sample) {
  std::optional<std::int64_t> label = 0;
  if (!sample.cls && !sample.json) {
    sample.refuse("has no label (.cls or .json)");
    return {};
  }
  const Status read =
      sample.cls ? read_cls_label(*sample.cls, *label) : read_json_label(*sample.json, label);
  if (!read.is_ok())
    sample.refuse(read.reason());
  else if (!label)
    sample.refuse("its .json has neither \"label\" nor \"cls\"");
  return sample.reason.empty() ? label : std::nullopt;
}

/// Collects the samples of one tar.
class TarListing {
 public:
  TarListing(const fs::path& tar, std::size_t number, std::uint64_t max_expansion, Listing& listing)
      : tar_(tar), number_(number), max_expansion_(max_expansion), listing_(listing) {}

  void run() {
    const ArchiveHandle opened = open_tar(tar_);
    for (std::uint64_t member = 0; archive_entry* entry = next_member(tar_, opened.get()); ++member)
      if (archive_entry_filetype(entry) == AE_IFREG) add(opened.get(), entry, member);
    end_sample();
    check_end_mark(tar_, opened.get());
  }

 private:
  void add(archive* opened, archive_entry* entry, std::uint64_t member) {
    const std::string path = name_of(entry);
    if (is_hidden_member(path)) {
      ++listing_.hidden;
      return;
    }
    const MemberName name = parse_member_name(path);
    if (!sample_ || sample_->key != name.key) {
      end_sample();
      sample_.emplace().key = name.key;
      if (!keys_.insert(sample_->key).second)
        sample_->refuse("its members are not adjacent: other samples lie between them");
    }
    const std::int64_t size = member_bytes(tar_, entry);
    if (is_image_extension(name.extension))
      add_image(opened, path, size, member);
    else if (name.extension == "cls")
      add_text(opened, size, ".cls", sample_->cls);
    else if (name.extension == "json")
      add_text(opened, size, ".json", sample_->json);
  }

  void add_image(archive* opened, const std::string& path, std::int64_t size,
                 std::uint64_t member) {
    if (sample_->image)
      sample_->refuse(fmt::format("has two images, {} and {}", *sample_->image, path));
    if (size > static_cast<std::int64_t>(max_image_bytes))
      sample_->refuse(fmt::format("its image is {} bytes long; at most 1 GiB is packed", size));
    check_expansion(opened, size);
    sample_->image = path;
    sample_->image_member = member;
  }

  /// Refuses a sample if its image expands too much: holes of sparse files and compressed zeros
  /// take almost no bytes in the tar.
  void check_expansion(archive* opened, std::int64_t size) {
    constexpr double always_allowed = 64 << 20;
    if (archive_read_data_skip(opened) != ARCHIVE_OK) throw_cut(tar_, opened);
    const std::int64_t read = archive_filter_bytes(opened, -1);
    const double bytes = image_bytes_ + static_cast<double>(size);
    if (bytes > always_allowed + static_cast<double>(max_expansion_) * static_cast<double>(read))
      sample_->refuse(
          fmt::format("its image is {} bytes long after {} bytes of the tar; at most {} times as "
                      "many are packed (--max-expansion)",
                      size, read, max_expansion_));
    if (sample_->reason.empty()) image_bytes_ = bytes;
  }

  void add_text(archive* opened, std::int64_t size, const char* extension,
                std::optional<std::string>& text) {
    if (text) sample_->refuse(fmt::format("has two {}", extension));
    text.emplace();
    if (size > static_cast<std::int64_t>(max_label_text_bytes))
      return sample_->refuse(
          fmt::format("its {} is {} bytes long, too long for a label", extension, size));
    const std::vector<std::byte> bytes = read_data(tar_, opened, size);
    text->assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  void end_sample() {
    if (!sample_) return;
    TarSample sample = std::move(*sample_);
    sample_.reset();
    const std::string tar = tar_.filename().string() + "/";
    if (!sample.image) sample.refuse("has no image (.jpg, .jpeg, .png, .webp ...)");
    const std::optional<std::int64_t> label =
        sample.reason.empty() ? label_of(sample) : std::nullopt;
    if (label)
      listing_.images.push_back({.path = tar + *sample.image,
                                 .label = *label,
                                 .tar = number_,
                                 .member = sample.image_member});
    else
      listing_.left_out.push_back({tar + sample.key, sample.reason});
  }

  const fs::path& tar_;
  std::size_t number_;
  std::uint64_t max_expansion_;
  Listing& listing_;
  /// Bytes of the images that are kept so far.
  double image_bytes_ = 0;
  std::optional<TarSample> sample_;
  std::unordered_set<std::string> keys_;
};

}  // namespace

void ArchiveDeleter::operator()(archive* opened) const { archive_read_free(opened); }

Listing list_tars(const std::vector<fs::path>& tars, std::uint64_t max_expansion) {
  Listing listing;
  for (std::size_t number = 0; number < tars.size(); ++number)
    TarListing(tars[number], number, max_expansion, listing).run();
  return listing;
}

std::vector<std::byte> TarImages::read(const ListedImage& image) {
  const fs::path& tar = tars_[image.tar];
  if (!archive_ || tar_ != image.tar) {
    archive_ = open_tar(tar);
    tar_ = image.tar;
    next_member_ = 0;
  }
  while (archive_entry* entry = next_member(tar, archive_.get()))
    if (next_member_++ == image.member) {
      if (tar.filename().string() + "/" + name_of(entry) != image.path) break;
      return read_data(tar, archive_.get(), member_bytes(tar, entry));
    }
  throw Error(ErrorCode::corrupt,
              fmt::format("{} was changed while it was packed: {} is not where it was",
                          tar.string(), image.path));
}

}  // namespace millrace::cli
