// SPDX-License-Identifier: Apache-2.0
//
// Makes samples of single images by a recipe, and the values to compare them with.
#pragma once

#include <gtest/gtest.h>
#include <millrace/detail/resample.h>
#include <millrace/image_transform.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/jpeg_samples.h"

namespace millrace::testing {

/// Resizes the shorter side, then takes the centred window.
inline Recipe window_of(Size output, int shorter) {
  return {output, {Resize{shorter}, CenterCrop{}}};
}

/// One worker of a transform with memory for its sample.
class Maker {
 public:
  explicit Maker(const Recipe& recipe)
      : transform_(image_transform(recipe)),
        worker_(transform_->make_worker()),
        size_(recipe.output),
        pixels_(transform_->spec().fields()[0].shape.elements() + guard) {}

  Status make(const Bytes& encoded, std::int64_t label, Random& random) {
    const std::array fields{RecordField{"image", encoded},
                            RecordField{"label", std::as_bytes(std::span(&label, 1))}};
    return make(Record(7, fields), random);
  }
  Status make(const Record& record, Random& random) {
    std::fill(pixels_.begin(), pixels_.end(), std::uint8_t{0xA5});
    std::vector places{Tensor{pixels_.data(), DType::uint8, transform_->spec().fields()[0].shape},
                       Tensor{&label_, DType::int64, transform_->spec().fields()[1].shape}};
    if (transform_->spec().fields().size() > 2) places.push_back({&flip_, DType::uint8, {}});
    Sample sample(transform_->spec(), places, stage_ns_);
    Status status = worker_->make(record, random, sample);
    sample.pause();
    decoder_name_ = sample.decoder_name() != nullptr ? sample.decoder_name() : "";
    for (std::size_t byte = pixels_.size() - guard; byte < pixels_.size(); ++byte)
      EXPECT_EQ(pixels_[byte], 0xA5) << "written past the end";
    return status;
  }

  /// Several images of one sample are stacked vertically.
  Image image() const {
    const Shape& shape = transform_->spec().fields()[0].shape;
    const int views = shape.rank() == 4 ? static_cast<int>(shape[0]) : 1;
    return {size_.width, views * size_.height, 3, {pixels_.begin(), pixels_.end() - guard}};
  }
  std::int64_t label() const { return label_; }
  /// The flip for the device, in a recipe that leaves flips to it.
  std::uint8_t flip() const { return flip_; }
  const std::array<std::uint64_t, 2>& stage_ns() const { return stage_ns_; }
  const std::string& decoder_name() const { return decoder_name_; }
  const Transform& transform() const { return *transform_; }

 private:
  static constexpr std::ptrdiff_t guard = 64;
  std::shared_ptr<const Transform> transform_;
  std::unique_ptr<TransformWorker> worker_;
  Size size_;
  std::vector<std::uint8_t> pixels_;
  std::int64_t label_ = -99;
  std::uint8_t flip_ = 99;
  std::array<std::uint64_t, 2> stage_ns_{};
  std::string decoder_name_;
};

inline std::size_t at(const Image& image, int x, int y) {
  return static_cast<std::size_t>(y * image.width + x) * 3;
}

inline Image cut(const Image& image, const Region& region) {
  Image part{region.width, region.height, 3,
             std::vector<std::uint8_t>(static_cast<std::size_t>(region.width * region.height) * 3)};
  for (int y = 0; y < region.height; ++y)
    for (int x = 0; x < region.width; ++x)
      if (region.x + x >= 0 && region.y + y >= 0 && region.x + x < image.width &&
          region.y + y < image.height)
        std::memcpy(&part.pixels[at(part, x, y)],
                    &image.pixels[at(image, region.x + x, region.y + y)], 3);
  return part;
}

/// The whole image resized like by Pillow, pixel by pixel.
inline Image resized(const Image& image, Size size, Interpolation interpolation) {
  Image made{size.width, size.height, 3,
             std::vector<std::uint8_t>(static_cast<std::size_t>(size.width * size.height) * 3)};
  const auto stride = [](const Image& rows) { return static_cast<std::size_t>(rows.width) * 3; };
  resample_plainly({.from = {image.width, image.height},
                    .to = size,
                    .window = {0, 0, size.width, size.height},
                    .interpolation = interpolation},
                   {image.pixels.data(), image.width, image.height, stride(image)},
                   made.pixels.data(), stride(made));
  return made;
}

inline Image bilinear(const Image& image, Size size) {
  return resized(image, size, Interpolation::bilinear);
}

}  // namespace millrace::testing
