// SPDX-License-Identifier: Apache-2.0
#include "dataset/pack_image.h"

#include <fmt/core.h>
#include <millrace/error.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <system_error>
#include <utility>

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

// Enough to tell what a file is that is no image: whatever else lies in a folder is not read as a
// whole.
constexpr std::size_t head_bytes = 4096;

[[noreturn]] void throw_unread(const fs::path& path, const std::string& reason) {
  throw Error(ErrorCode::io, path.string() + " cannot be read: " + reason);
}

/// An error of the path's own is a bad status, one of the system's is thrown: it says nothing of
/// the image.
Status not_there(const fs::path& path, int error) {
  const std::string reason = std::generic_category().message(error);
  for (const int its_own : {ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG})
    if (error == its_own) return Status::bad("cannot be read: " + reason);
  throw_unread(path, reason);
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// Reads on up to `end` bytes in all.
void read_up_to(std::FILE* file, std::size_t end, std::vector<std::byte>& bytes,
                const fs::path& path) {
  const std::size_t begin = bytes.size();
  bytes.resize(end);
  if (std::fread(bytes.data() + begin, 1, end - begin, file) == end - begin) return;
  if (std::ferror(file) != 0) throw_unread(path, std::generic_category().message(errno));
  throw_unread(path, "it was changed: it is shorter than it was a moment ago");
}

Status read_checked(const fs::path& path, ImageDecoder& decoder, std::vector<std::byte>& bytes) {
  struct stat there {};
  if (stat(path.c_str(), &there) != 0) return not_there(path, errno);
  if (S_ISDIR(there.st_mode)) return Status::bad("is a folder");
  if (!S_ISREG(there.st_mode)) return Status::bad("is no regular file");
  const auto size = static_cast<std::size_t>(there.st_size);
  if (size == 0) return Status::bad("is empty");
  if (size > max_image_bytes)
    return Status::bad(fmt::format("is {} bytes long; at most 1 GiB is packed", size));
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rbe"));
  if (!file) return not_there(path, errno);
  std::setvbuf(file.get(), nullptr, _IONBF, 0);

  read_up_to(file.get(), std::min(size, head_bytes), bytes, path);
  if (Status known = check_image_kind(bytes); !known.is_ok()) return known;
  read_up_to(file.get(), size, bytes, path);
  if (std::fgetc(file.get()) != EOF)
    throw_unread(path, "it was changed: it is longer than it was a moment ago");
  if (Status opened = decoder.open(bytes); !opened.is_ok()) return opened;
  return decoder.check();
}

Status checked(std::span<const std::byte> bytes, ImageDecoder& decoder) {
  if (bytes.empty()) return Status::bad("is empty");
  if (Status opened = decoder.open(bytes); !opened.is_ok()) return opened;
  return decoder.check();
}

}  // namespace

std::shared_ptr<Decoders> make_decoders(std::size_t workers, const DecodeLimits& limits) {
  const auto budget = std::make_shared<DecodeBudget>(limits);
  auto decoders = std::make_shared<Decoders>(workers);
  for (std::unique_ptr<ImageDecoder>& decoder : *decoders) decoder = make_image_decoder(budget);
  return decoders;
}

CheckedImage check_image(UncheckedImage unchecked, ImageDecoder& decoder) {
  CheckedImage image;
  image.bytes = std::move(unchecked.bytes);
  image.rest = std::move(unchecked.rest);
  image.status = std::move(unchecked.status);
  if (!image.status.is_ok() || (image.rest && !image.rest->has_image)) return image;
  image.status = unchecked.file.empty() ? checked(image.bytes, decoder)
                                        : read_checked(unchecked.file, decoder, image.bytes);
  if (image.status.is_ok())
    image.header = decoder.header();
  else
    image.bytes = {};
  return image;
}

ReadImages::ReadImages(std::vector<UncheckedImage> unchecked, std::shared_ptr<Decoders> decoders)
    : unchecked_(std::move(unchecked)),
      decoders_(std::move(decoders)),
      images_(unchecked_.size()) {}

void ReadImages::run(std::size_t item, unsigned worker) {
  try {
    images_[item].set_value(check_image(std::move(unchecked_[item]), *(*decoders_)[worker]));
  } catch (...) {
    images_[item].set_exception(std::current_exception());
  }
}

}  // namespace millrace::cli
