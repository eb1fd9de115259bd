// SPDX-License-Identifier: Apache-2.0
#include "dataset/pack_image.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <fstream>
#include <span>
#include <string>
#include <system_error>
#include <utility>

namespace millrace::cli {
namespace {

// Enough to tell what a file is that is no image: whatever else lies in a folder is not read as a
// whole.
constexpr std::uintmax_t head_bytes = 4096;

Status read_up_to(std::ifstream& file, std::uintmax_t end, std::vector<std::byte>& bytes) {
  const std::size_t begin = bytes.size();
  bytes.resize(static_cast<std::size_t>(end));
  const auto count = static_cast<std::streamsize>(bytes.size() - begin);
  if (file.read(reinterpret_cast<char*>(bytes.data() + begin), count)) return Status::ok();
  return Status::bad("cannot be read to its end");
}

Status read_checked(const std::filesystem::path& path, ImageDecoder& decoder,
                    std::vector<std::byte>& bytes) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return Status::bad("cannot be read: " + error.message());
  if (size == 0) return Status::bad("is empty");
  if (size > max_image_bytes)
    return Status::bad(fmt::format("is {} bytes long; at most 1 GiB is packed", size));
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status::bad("cannot be read: " + std::generic_category().message(errno));

  if (Status read = read_up_to(file, std::min(size, head_bytes), bytes); !read.is_ok()) return read;
  if (Status known = check_image_kind(bytes); !known.is_ok()) return known;
  if (Status read = read_up_to(file, size, bytes); !read.is_ok()) return read;
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
