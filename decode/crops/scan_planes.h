// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/crop_work.h>

#include <cstdint>

namespace millrace::crops {

/// Makes all samples of a crop that has a scan. Returns false if a segment has invalid data or a
/// wrong end (`ends_right`).
bool make_planes_of_scan(const CropHeader& crop, std::uint8_t* scratch);

}  // namespace millrace::crops
