// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/sample_geometry.h>

#include <string>
#include <vector>

#include "image/made_image.h"

namespace millrace::cli {

/// A sample, and what it shows of its image.
struct ShownSample {
  MadeImage image;
  SampleGeometry geometry;
};

/// Draws samples beside the image that they are made of, with their boxes in it, each in a colour
/// of its own that frames the sample, too. The titles stand above, a line each.
MadeImage draw_sheet(const std::vector<std::string>& titles, const MadeImage& original,
                     const std::vector<ShownSample>& samples);

}  // namespace millrace::cli
