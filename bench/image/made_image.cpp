// SPDX-License-Identifier: Apache-2.0
#include "image/made_image.h"

#include <fmt/format.h>
#include <millrace/error.h>
#include <openssl/sha.h>
#include <png.h>

#include <array>

namespace millrace::cli {

Status make_image(const Transform& transform, std::span<const std::byte> encoded, Random& random,
                  MadeImage& made) {
  const std::int64_t label = 0;
  const std::array fields{RecordField{"image", encoded},
                          RecordField{"label", std::as_bytes(std::span(&label, 1))}};
  std::vector<std::vector<std::byte>> memory;
  std::vector<Tensor> places;
  for (const FieldSpec& field : transform.spec().fields()) {
    Tensor place{nullptr, field.dtype, field.shape};
    place.data = memory.emplace_back(place.bytes()).data();
    places.push_back(place);
  }
  Sample sample(transform.spec(), places);
  Status status = transform.make_worker()->make(Record(0, fields), random, sample);
  sample.finish();
  if (!status.is_ok()) return status;
  const Tensor& image = sample["image"];
  // Several images of a sample come below each other.
  const Shape& shape = image.shape;
  const std::size_t views = shape.rank() == 4 ? shape[0] : 1;
  made.size = {static_cast<int>(shape[shape.rank() - 2]),
               static_cast<int>(views * shape[shape.rank() - 3])};
  const auto* rgb = static_cast<const std::uint8_t*>(image.data);
  made.rgb.assign(rgb, rgb + image.bytes());
  return status;
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
