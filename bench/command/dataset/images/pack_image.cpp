// SPDX-License-Identifier: Apache-2.0
#include "command/dataset/images/pack_image.h"

#include <fmt/core.h>
#include <millrace/detail/errno_text.h>
#include <millrace/detail/interrupted.h>
#include <millrace/error.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <utility>

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

// Number of bytes that suffice to recognise an image. `millrace pack` reads only these bytes of
// files that are not images.
constexpr std::size_t head_bytes = 4096;

[[noreturn]] void throw_unread(const fs::path& path, const std::string& reason) {
  throw Error(ErrorCode::io, path.string() + " cannot be read: " + reason);
}

/// Returns a bad status if the error concerns the path. Throws for an error of the system, since
/// the image itself may be good.
Status not_there(const fs::path& path, int error) {
  const std::string reason = errno_text(error);
  for (const int its_own : {ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG})
    if (error == its_own) return Status::bad("cannot be read: " + reason);
  throw_unread(path, reason);
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// Continues reading up to byte `end`. Throws `Error` (`io`) if the file is shorter.
void read_up_to(std::FILE* file, std::size_t end, std::vector<std::byte>& bytes,
                const fs::path& path) {
  const std::size_t begin = bytes.size();
  bytes.resize(end);
  if (std::fread(bytes.data() + begin, 1, end - begin, file) == end - begin) return;
  if (std::ferror(file) != 0) throw_unread(path, errno_text(errno));
  throw_unread(path, "it was changed: it is shorter than it was a moment ago");
}

/// Reads a file if `check_kind` accepts its first bytes.
Status read_regular(const fs::path& path, Status (*check_kind)(std::span<const std::byte>),
                    std::vector<std::byte>& bytes) {
  struct stat there {};
  if (stat(path.c_str(), &there) != 0) return not_there(path, errno);
  if (S_ISDIR(there.st_mode)) return Status::bad("is a folder");
  if (!S_ISREG(there.st_mode)) return Status::bad("is not a regular file");
  const auto size = static_cast<std::size_t>(there.st_size);
  if (size == 0) return Status::bad("is empty");
  if (size > max_image_bytes)
    return Status::bad(fmt::format("is {} bytes long; at most 1 GiB is packed", size));
  const std::unique_ptr<std::FILE, CloseFile> file(open_stdio(path.c_str(), "rbe"));
  if (!file) return not_there(path, errno);
  std::setvbuf(file.get(), nullptr, _IONBF, 0);

  read_up_to(file.get(), std::min(size, head_bytes), bytes, path);
  if (Status known = check_kind(bytes); !known.is_ok()) return known;
  read_up_to(file.get(), size, bytes, path);
  if (std::fgetc(file.get()) != EOF)
    throw_unread(path, "it was changed: it is longer than it was a moment ago");
  return Status::ok();
}

Status checked(std::span<const std::byte> bytes, ImageDecoder& decoder) {
  if (bytes.empty()) return Status::bad("is empty");
  if (Status opened = decoder.open(bytes); !opened.is_ok()) return opened;
  return decoder.check();
}

Status check_png(std::span<const std::byte> head) {
  const ImageKind kind = image_kind(head);
  if (kind == ImageKind::png) return Status::ok();
  return Status::bad(kind == ImageKind::unknown
                         ? "is not a PNG file"
                         : fmt::format("is a {} image, and masks are PNG", to_string(kind)));
}

/// Reads a mask and checks that it decodes and has the image's size. Its bytes are stored
/// unchanged: only the trainer knows the meaning of its values.
Status read_mask(const fs::path& path, Size size, ImageDecoder& decoder,
                 std::vector<std::byte>& bytes) {
  struct stat there {};
  if (stat(path.c_str(), &there) != 0 && errno == ENOENT)
    return Status::bad("it has no mask: " + path.string() + " does not exist");
  const std::string mask = "its mask " + path.string() + " ";
  if (const Status read = read_regular(path, check_png, bytes); !read.is_ok())
    return Status::bad(mask + read.reason());
  ImageInfo info;
  if (const Status known = read_image_info(bytes, info); !known.is_ok())
    return Status::bad(mask + "has no sound header: " + known.reason());
  if (info.size() != size)
    return Status::bad(fmt::format("{}is {} x {}, the image {} x {}", mask, info.width, info.height,
                                   size.width, size.height));
  const Status sound = checked(bytes, decoder);
  return sound.is_ok() ? sound : Status::bad(mask + "does not decode: " + sound.reason());
}

/// Compares an image's size with its annotations, and adds its mask.
Status check_annotations(const UncheckedImage& unchecked, ImageDecoder& decoder,
                         CheckedImage& image) {
  const auto is_another = [](std::int64_t said, int side) { return said != 0 && said != side; };
  const Size size = image.header.size();
  if (is_another(unchecked.width, size.width))
    return Status::bad(
        fmt::format("is {} wide, and its \"width\" is {}", size.width, unchecked.width));
  if (is_another(unchecked.height, size.height))
    return Status::bad(
        fmt::format("is {} high, and its \"height\" is {}", size.height, unchecked.height));
  if (unchecked.mask.empty()) return Status::ok();
  if (!image.rest) image.rest.emplace();
  image.rest->fields.push_back({"mask", {}});
  return read_mask(unchecked.mask, size, decoder, image.rest->fields.back().bytes);
}

/// Converts an image to the form in which it is stored, and checks it. Afterwards the decoder has
/// the stored form's header.
Status recode_checked(CheckedImage& image, ImageDecoder& decoder, ImageRecoder* recoder) {
  const std::size_t bytes = image.bytes.size();
  if (recoder != nullptr) {
    if (Status recoded = recoder->recode(decoder, image.bytes); !recoded.is_ok()) return recoded;
    image.reason_kept_as_jpeg = recoder->reason_kept_as_jpeg();
    if (recoder->made_coefficients()) {
      image.recoded_bytes = bytes;
      return Status::ok();
    }
  }
  return checked(image.bytes, decoder);
}

}  // namespace

std::size_t UncheckedImage::held_bytes() const {
  std::size_t held = bytes.size();
  if (rest)
    for (const RecordRest::Field& field : rest->fields) held += field.bytes.size();
  return held;
}

std::shared_ptr<Decoders> make_decoders(std::size_t workers, const DecodeLimits& limits,
                                        StoredForm form) {
  const auto budget = std::make_shared<DecodeBudget>(limits);
  auto decoders = std::make_shared<Decoders>();
  for (std::size_t worker = 0; worker < workers; ++worker) {
    decoders->all.push_back(make_image_decoder(budget));
    decoders->recoders.push_back(std::make_unique<ImageRecoder>(form, budget));
  }
  return decoders;
}

CheckedImage check_image(UncheckedImage unchecked, ImageDecoder& decoder, ImageRecoder* recoder) {
  CheckedImage image;
  image.bytes = std::move(unchecked.bytes);
  image.rest = std::move(unchecked.rest);
  image.status = std::move(unchecked.status);
  if (!image.status.is_ok() || (image.rest && !image.rest->has_image)) return image;
  if (!unchecked.file.empty())
    image.status = read_regular(unchecked.file, check_image_kind, image.bytes);
  if (image.status.is_ok()) image.status = recode_checked(image, decoder, recoder);
  if (image.status.is_ok()) {
    image.header = decoder.header();
    image.status = check_annotations(unchecked, decoder, image);
  }
  if (!image.status.is_ok()) {
    image.bytes = {};
    image.rest = {};
  }
  return image;
}

ReadImages::ReadImages(std::vector<UncheckedImage> unchecked, std::shared_ptr<Decoders> decoders)
    : unchecked_(std::move(unchecked)),
      decoders_(std::move(decoders)),
      images_(unchecked_.size()) {}

void ReadImages::run(std::size_t item, unsigned worker) {
  try {
    images_[item].set_value(check_image(std::move(unchecked_[item]), *decoders_->all[worker],
                                        decoders_->recoders[worker].get()));
  } catch (...) {
    images_[item].set_exception(std::current_exception());
  }
}

}  // namespace millrace::cli
