// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/sample_geometry.h>

#include <string>
#include <vector>

#include "command/image/made_image.h"

namespace millrace::cli {

/// A sample and the region of its image that it shows.
struct ShownSample {
  MadeImage image;
  SampleGeometry geometry;
};

/// Draws samples beside their original image. Each sample's region is drawn in the original in its
/// own colour, which also frames the sample. The titles are above, a line each.
MadeImage draw_sheet(const std::vector<std::string>& titles, const MadeImage& original,
                     const std::vector<ShownSample>& samples);

}  // namespace millrace::cli
