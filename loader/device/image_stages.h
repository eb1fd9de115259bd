// SPDX-License-Identifier: Apache-2.0
//
// The stages that end the device's work on a batch's images, behind a field's own stages.
#pragma once

#include <millrace/conversion_work.h>
#include <millrace/device_stage.h>

#include <cstddef>
#include <memory>
#include <optional>

namespace millrace {

/// Places of the fields that say how images are flipped, erased and mixed; nullopt without one.
struct ImageFields {
  std::optional<std::size_t> flips;
  std::optional<std::size_t> erases;
  std::optional<std::size_t> mixes;
};

/// Makes the stage "erase", "mix" or "erase+mix": it changes the 8-bit images of `work` in place,
/// so `Samples::to` is `Samples::from`. Returns null if there is nothing to erase or mix.
std::shared_ptr<const DeviceStage> mix_stage(const ConversionWork& work, const ImageFields& fields);

/// Makes the stage "convert". `work` has the parameters that all its launches share. The result has
/// the type and the layout of `work`, so its size is not that of the input.
std::shared_ptr<const DeviceStage> conversion_stage(const ConversionWork& work,
                                                    const ImageFields& fields,
                                                    std::size_t images_per_sample);

}  // namespace millrace
