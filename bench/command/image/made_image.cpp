// SPDX-License-Identifier: Apache-2.0
#include "command/image/made_image.h"

#include <fmt/format.h>
#include <millrace/error.h>
#include <openssl/sha.h>
#include <png.h>

#include <array>

namespace millrace::cli {

Status MadeSample::make(const Transform& transform, const Record& record, Random& random) {
  spec_ = transform.spec();
  memory_.clear();
  places_.clear();
  for (const FieldSpec& field : spec_.fields()) {
    Tensor place{nullptr, field.dtype, field.shape};
    place.data = memory_.emplace_back(place.bytes()).data();
    places_.push_back(place);
  }
  Sample sample(spec_, places_);
  return transform.make_worker()->make(record, random, sample);
}

const Tensor& MadeSample::operator[](std::string_view field) const {
  return places_[spec_.index_of(field)];
}

std::size_t MadeSample::length(std::string_view field) const {
  return places_[spec_.length_field_of(spec_.index_of(field))].as<std::uint32_t>()[0];
}

MadeImage MadeSample::image() const {
  const Tensor& image = (*this)["image"];
  const Shape& shape = image.shape;
  const std::size_t views = shape.rank() == 4 ? shape[0] : 1;
  const auto* rgb = static_cast<const std::uint8_t*>(image.data);
  return {{static_cast<int>(shape[shape.rank() - 2]),
           static_cast<int>(views * shape[shape.rank() - 3])},
          {rgb, rgb + image.bytes()}};
}

std::string png_of(const MadeImage& image) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.size.width);
  png.height = static_cast<png_uint_32>(image.size.height);
  png.format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string file(bytes, '\0');
  if (png_image_write_to_memory(&png, file.data(), &bytes, 0, image.rgb.data(), 0, nullptr) == 0)
    throw Error(ErrorCode::io, fmt::format("libpng: {}", png.message));
  file.resize(bytes);
  return file;
}

std::string sha256_of(const MadeImage& image) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(image.rgb.data(), image.rgb.size(), digest.data());
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

}  // namespace millrace::cli
