// SPDX-License-Identifier: Apache-2.0
//
// The last device stages of a batch's images. They follow the field's own stages.
#pragma once

#include <millrace/conversion_work.h>
#include <millrace/device_stage.h>

#include <cstddef>
#include <memory>
#include <optional>

namespace millrace {

/// Indices of the fields that say how images are flipped, erased and mixed; nullopt without such a
/// field.
struct ImageFields {
  std::optional<std::size_t> flip_field;
  std::optional<std::size_t> erase_field;
  std::optional<std::size_t> mix_field;
};

/// Makes the stage "erase", "mix" or "erase+mix": it changes the 8-bit images of `work` in place.
/// So `Samples::to` must equal `Samples::from`. Returns null if there is nothing to erase or mix.
std::shared_ptr<const DeviceStage> mix_stage(const ConversionWork& work, const ImageFields& fields);

/// Makes the stage "convert". `work` has the parameters that all its launches share. The result has
/// the type and the layout of `work`, so its size may differ from the input's.
std::shared_ptr<const DeviceStage> conversion_stage(const ConversionWork& work,
                                                    const ImageFields& fields,
                                                    std::size_t images_per_sample);

}  // namespace millrace
