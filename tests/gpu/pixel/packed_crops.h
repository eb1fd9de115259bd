// SPDX-License-Identifier: Apache-2.0
//
// Crops of JPEGs, packed for `CropWork`, and the images that they must become.
#pragma once

#include <gtest/gtest.h>
#include <millrace/crop_work.h>
#include <millrace/detail/crop_layout.h>
#include <millrace/detail/crop_packer.h>
#include <millrace/detail/jpeg_crop_packer.h>
#include <millrace/detail/jpeg_recoder.h>
#include <millrace/detail/resample.h>
#include <millrace/image_decoder.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "support/jpeg_samples.h"

namespace millrace::testing {

inline CropAxis axis_of(const ResampleAxis& axis) {
  return {axis.begins(), axis.weights(), axis.taps(), static_cast<int>(axis.stride())};
}

/// Returns the seek index of a whole JPEG; empty if it cannot have one.
inline Bytes index_of(const Bytes& jpeg, IndexPoints points = IndexPoints::tiles) {
  const auto decoder = make_image_decoder();
  if (!decoder->open(jpeg).is_ok()) return {};
  decoder->use_index({}, std::nullopt, points);
  EXPECT_TRUE(decoder->check().is_ok());
  const auto index = decoder->extended_index();
  return {index.begin(), index.end()};
}

/// A batch of packed crops in host memory.
class PackedCrops {
 public:
  static constexpr std::size_t max_scratch = std::size_t{1} << 24U;

  explicit PackedCrops(Size to) : to_(to) {}

  /// Adds a crop of a record, and its image: what the CPU makes of the record's JPEG. Returns
  /// whether it can be packed.
  bool add(const Bytes& jpeg, const Bytes& record, const Resampling& resampling) {
    CropPacker packer;
    if (!packer.open(record).is_ok()) return false;
    const auto measure = [&](const Crop& crop) {
      std::size_t bytes = 0;
      return packer.measure(crop, max_scratch, bytes).is_ok() ? bytes : 0;
    };
    if (!add_packed(packer, measure, resampling)) return false;
    const auto image = made_of(jpeg, {}, std::nullopt, resampling);
    EXPECT_TRUE(image.has_value());
    images.insert(images.end(), image->begin(), image->end());
    return true;
  }

  /// Adds a crop of a JPEG with a seek index, and its image. `checksum` is the one that the index
  /// has. Returns whether it can be packed. If the CPU finds the JPEG bad, the image is empty.
  bool add_jpeg(const Bytes& jpeg, const Bytes& index, std::optional<std::uint64_t> checksum,
                const Resampling& resampling) {
    const auto decoder = make_image_decoder();
    JpegCropPacker packer;
    if (!decoder->open(jpeg).is_ok()) return false;
    decoder->use_index(index, checksum);
    if (!packer.open(*decoder)) return false;
    const auto measure = [&](const Crop& crop) { return packer.measure(crop, max_scratch); };
    if (!add_packed(packer, measure, resampling)) return false;
    const auto image = made_of(jpeg, index, checksum, resampling);
    if (image) images.insert(images.end(), image->begin(), image->end());
    return true;
  }

  /// Cuts the memory of the inputs after the only sample's packed crop.
  void cut() {
    units_.resize((header(0).bytes + sizeof(Unit) - 1) / sizeof(Unit));
    units_.shrink_to_fit();
  }

  std::span<const std::byte> inputs() const { return std::as_bytes(std::span(units_)); }
  std::byte* input(std::size_t sample) { return units_[offsets[sample]].bytes; }
  const CropHeader& header(std::size_t sample) {
    return *reinterpret_cast<const CropHeader*>(input(sample));
  }
  Size size() const { return to_; }
  std::size_t image_bytes() const {
    return 3 * static_cast<std::size_t>(to_.width) * static_cast<std::size_t>(to_.height);
  }
  std::size_t scratch_bytes() const { return scratch_bytes_; }
  /// Leaves too little scratch for sample `sample` and those after it.
  void keep_scratch_of(std::size_t sample) {
    scratch_bytes_ = 0;
    for (std::size_t n = 0; n <= sample; ++n)
      if (offsets[n] != CropWork::no_input)
        scratch_bytes_ += scratch_units(placed(), n) * scratch_unit;
    --scratch_bytes_;
  }
  /// The work, without its memory.
  CropWork work() const {
    CropWork work;
    work.scratch_bytes = scratch_bytes_;
    work.samples = packed.size();
    work.height = to_.height;
    work.width = to_.width;
    return work;
  }

  /// The place of each sample's input, and whether it is a packed crop.
  std::vector<std::uint32_t> offsets;
  std::vector<std::uint8_t> packed;
  /// The expected images, one after the other.
  std::vector<std::uint8_t> images;

 private:
  /// The work with its input in host memory.
  CropWork placed() const {
    CropWork of_host = work();
    of_host.inputs = inputs().data();
    of_host.offsets = offsets.data();
    of_host.packed = packed.data();
    return of_host;
  }

  struct alignas(CropWork::input_unit) Unit {
    std::byte bytes[CropWork::input_unit];
  };

  template <typename Packer, typename Measure>
  bool add_packed(const Packer& packer, const Measure& measure, const Resampling& resampling) {
    const WantedAxes wanted = wanted_axes(resampling);
    ResampleAxis across;
    across.make(wanted.horizontal);
    ResampleAxis down;
    down.make(wanted.vertical);
    Region region{across.first(), down.first(), across.needed(), down.needed()};
    const bool exchanged = resampling.turn.transposed;
    if (exchanged) region = {region.y, region.x, region.height, region.width};
    const std::size_t bytes = measure(Crop{.region = region,
                                           .exchanged = exchanged,
                                           .horizontal = axis_of(across),
                                           .vertical = axis_of(down),
                                           .vertical_first = vertical_first(resampling)});
    if (bytes == 0) return false;
    const std::size_t begin = units_.size();
    // An image fits, too.
    units_.resize(begin + std::max(bytes, image_bytes()) / sizeof(Unit) + 1);
    packer.pack(units_[begin].bytes);
    offsets.push_back(static_cast<std::uint32_t>(begin));
    packed.push_back(1);
    const CropHeader& crop = header(packed.size() - 1);
    EXPECT_EQ(crop.bytes, bytes);
    scratch_bytes_ += (crop_scratch_bytes(crop, to_.width) + 255) / 256 * 256;
    return true;
  }

  std::optional<std::vector<std::uint8_t>> made_of(const Bytes& jpeg, const Bytes& index,
                                                   std::optional<std::uint64_t> checksum,
                                                   const Resampling& resampling) const {
    const auto decoder = make_image_decoder();
    Resampler resampler;
    const Region region = resampler.prepare(resampling);
    PixelView view;
    EXPECT_TRUE(decoder->open(jpeg).is_ok());
    if (!index.empty()) decoder->use_index(index, checksum);
    if (!decoder->decode(region, view).is_ok()) return std::nullopt;
    std::vector<std::uint8_t> image(image_bytes());
    resampler.run(view, image.data(), 3 * static_cast<std::size_t>(to_.width));
    return image;
  }

  Size to_;
  std::size_t scratch_bytes_ = 0;
  std::vector<Unit> units_;
};

}  // namespace millrace::testing
