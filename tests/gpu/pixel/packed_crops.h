// SPDX-License-Identifier: Apache-2.0
//
// Crops of JPEGs, packed for `CropWork`, and the images that they must become.
#pragma once

#include <gtest/gtest.h>
#include <millrace/crop_work.h>
#include <millrace/detail/crop_layout.h>
#include <millrace/detail/crop_packer.h>
#include <millrace/detail/jpeg_recoder.h>
#include <millrace/detail/resample.h>
#include <millrace/image_decoder.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "support/jpeg_samples.h"

namespace millrace::testing {

/// The weights of an axis as `CropAxis` refers to them.
struct AxisTable {
  std::vector<std::int32_t> begins;
  std::vector<std::int32_t> weights;
  int taps = 0;

  explicit AxisTable(const ResampleAxis& axis) : taps(axis.taps()) {
    for (int pixel = 0; pixel < axis.count(); ++pixel) {
      begins.push_back(axis.begin(pixel));
      weights.insert(weights.end(), axis.weights(pixel).begin(), axis.weights(pixel).end());
    }
  }
  CropAxis axis() const { return {begins, weights, taps}; }
};

/// A batch of packed crops in host memory.
class PackedCrops {
 public:
  static constexpr std::size_t place_bytes = std::size_t{1} << 20U;

  explicit PackedCrops(Size to) : to_(to) {}

  /// Adds a crop of a record, and its image: what the CPU makes of the record's JPEG. Returns
  /// whether it can be packed.
  bool add(const Bytes& jpeg, const Bytes& record, const Resampling& resampling) {
    CropPacker packer;
    if (!packer.open(record).is_ok()) return false;
    const SourceBox box = *resampling.box;
    ResampleAxis across;
    across.make({resampling.from.width, box.left, box.right, to_.width, 0, to_.width,
                 resampling.interpolation, resampling.mirrored});
    ResampleAxis down;
    down.make({resampling.from.height, box.top, box.bottom, to_.height, 0, to_.height,
               resampling.interpolation, resampling.flipped});
    const AxisTable horizontal(across);
    const AxisTable vertical(down);
    const std::size_t begin = bytes_.size();
    bytes_.resize(begin + place_bytes);
    std::size_t bytes = 0;
    const Status status =
        packer.pack({.region = {across.first(), down.first(), across.needed(), down.needed()},
                     .horizontal = horizontal.axis(),
                     .vertical = vertical.axis(),
                     .vertical_first = vertical_first(resampling)},
                    std::size_t{1} << 24U, std::span(bytes_).subspan(begin), bytes);
    if (!status.is_ok() || bytes == 0) {
      bytes_.resize(begin);
      return false;
    }
    packed.push_back(1);
    const auto& header = *reinterpret_cast<const CropHeader*>(bytes_.data() + begin);
    scratch_stride_ =
        std::max(scratch_stride_, (crop_scratch_bytes(header, to_.width) + 255) / 256 * 256);
    const std::vector<std::uint8_t> image = made_of(jpeg, resampling);
    images.insert(images.end(), image.begin(), image.end());
    return true;
  }

  std::span<std::byte> places() { return bytes_; }
  std::span<std::byte> place(std::size_t sample) {
    return std::span(bytes_).subspan(sample * place_bytes, place_bytes);
  }
  Size size() const { return to_; }
  std::size_t image_bytes() const {
    return 3 * static_cast<std::size_t>(to_.width) * static_cast<std::size_t>(to_.height);
  }
  std::size_t scratch_bytes() const { return scratch_stride_ * packed.size(); }
  /// The work, without its memory.
  CropWork work() const {
    CropWork work;
    work.scratch_stride = scratch_stride_;
    work.place_bytes = place_bytes;
    work.samples = packed.size();
    work.height = to_.height;
    work.width = to_.width;
    return work;
  }

  /// Whether each sample's place has a packed crop.
  std::vector<std::uint8_t> packed;
  /// The expected images, one after the other.
  std::vector<std::uint8_t> images;

 private:
  std::vector<std::uint8_t> made_of(const Bytes& jpeg, const Resampling& resampling) const {
    const auto decoder = make_image_decoder(std::make_shared<DecodeBudget>());
    Resampler resampler;
    const Region region = resampler.prepare(resampling);
    PixelView view;
    EXPECT_TRUE(decoder->open(jpeg).is_ok());
    EXPECT_TRUE(decoder->decode(region, view).is_ok());
    std::vector<std::uint8_t> image(image_bytes());
    resampler.run(view, image.data(), 3 * static_cast<std::size_t>(to_.width));
    return image;
  }

  Size to_;
  std::size_t scratch_stride_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace millrace::testing
