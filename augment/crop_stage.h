// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/crop_packer.h>
#include <millrace/detail/resample.h>
#include <millrace/device_stage.h>
#include <millrace/operation.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ops/resample_plan.h"

namespace millrace {

/// Returns the device's stage that makes images of `output` from the field's packed crops, or takes
/// those that a worker made. Field number `packed` says which (`CropWork`).
std::shared_ptr<const DeviceStage> crop_stage(Size output, std::size_t packed);

/// Packs images for `crop_stage`. For one thread.
class ImagePacker {
 public:
  /// Returns whether `pack` may pack an image with this plan.
  static bool takes(const ResamplePlan& plan);
  /// Packs a record of the form `coefficients` into an image's place. Sets whether the device can
  /// make the image: it fits and, if `untrusted`, the record's checksum is right. Returns a bad
  /// status for a record whose tables are corrupt.
  Status pack(std::span<const std::byte> record, bool untrusted, const ResamplePlan& plan,
              std::span<std::byte> place, bool& fits);

 private:
  /// An axis's numbers as the packer takes them.
  struct Axis {
    ResampleAxis axis;
    std::vector<std::int32_t> begins;
    std::vector<std::int32_t> weights;

    CropAxis make(const ResampleAxis::Wanted& wanted);
  };

  CropPacker packer_;
  Axis horizontal_;
  Axis vertical_;
};

}  // namespace millrace
