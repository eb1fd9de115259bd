// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/crop_packer.h>
#include <millrace/detail/jpeg_crop_packer.h>
#include <millrace/detail/resample.h>
#include <millrace/device_stage.h>
#include <millrace/operation.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "ops/resample_plan.h"

namespace millrace {

/// Returns the device stage that makes images of size `output` from packed crops, and copies the
/// images that a worker made. Field number `packed` tells which a sample has (`CropWork::packed`).
std::shared_ptr<const DeviceStage> crop_stage(Size output, std::size_t packed);

/// Packs images for `crop_stage`. For one thread.
class ImagePacker {
 public:
  /// Returns whether `pack` may pack an image with this plan.
  static bool takes(const ResamplePlan& plan);
  /// Measures the packed crop of a record of the form `coefficients`. Sets `bytes` to its size; 0
  /// if it is so large that a worker must make the image. Returns a bad status for a record whose
  /// tables are corrupt.
  Status measure(std::span<const std::byte> record, const ResamplePlan& plan, std::size_t& bytes);
  /// Measures the packed crop of the JPEG that a decoder has opened, with the index that it uses.
  /// Returns its size in bytes; 0 if a worker must make the image.
  std::size_t measure(ImageDecoder& decoder, const ResamplePlan& plan);
  /// Returns the least number of input bytes that the measured crop must reserve: a sample's share
  /// of the scratch is proportional to its input. An image has `image_bytes` bytes.
  std::size_t min_bytes(std::size_t image_bytes) const;
  /// Packs the crop that was measured last. The record must still be valid.
  void pack(std::byte* to) const { is_jpeg_ ? jpeg_packer_.pack(to) : packer_.pack(to); }

 private:
  Crop crop_of(const ResamplePlan& plan);

  CropPacker packer_;
  JpegCropPacker jpeg_packer_;
  bool is_jpeg_ = false;
  ResampleAxis horizontal_;
  ResampleAxis vertical_;
};

}  // namespace millrace
