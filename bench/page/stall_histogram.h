// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/report.h>

#include <string>

#include "page/timeline.h"

namespace millrace::cli {

struct StallPicture {
  /// Markup; empty where no call waited.
  std::string html;
  /// How many calls waited and how long, in a sentence or two.
  std::string text;
};

/// How long calls of `next` waited for data, from the spans named "stall" of lanes "trainer".
StallPicture draw_stalls(const TracePicture& picture, const Report& report);

}  // namespace millrace::cli
