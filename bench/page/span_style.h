// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace millrace::cli {

/// How spans of a name are drawn, on every page the same.
struct SpanStyle {
  /// CSS class that gives the colour of its stroke and, as a fill, of its bar.
  const char* css = "kind-other";
  /// Of the lane, 0 to 1: tells kinds apart without colour.
  double thickness = 0.85;
  /// Where it stands in a legend.
  int order = 100;
};

SpanStyle span_style(std::string_view name);

}  // namespace millrace::cli
