// SPDX-License-Identifier: Apache-2.0
#include "page/span_style.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace millrace::cli {
namespace {

struct NamedStyle {
  std::string_view name;
  SpanStyle style;
};

constexpr NamedStyle styles[] = {
    {"read", {"kind-read", 0.4}},       {"decode", {"kind-decode", 1}},
    {"augment", {"kind-augment", 0.7}}, {"plan", {"kind-plan", 0.7}},
    {"upload", {"kind-copy", 0.7}},     {"copy", {"kind-copy", 1}},
    {"convert", {"kind-copy", 0.4}},    {"step", {"kind-step", 1}},
    {"trainer", {"kind-step", 1}},      {"device", {"kind-step", 1}},
    {"stall", {"kind-stall", 1}},       {"ahead", {"kind-ahead", 0.4}}};

}  // namespace

SpanStyle span_style(std::string_view name) {
  if (name.starts_with("wait")) return {"kind-wait", 0.2};
  const auto* known = std::find_if(std::begin(styles), std::end(styles),
                                   [&](const NamedStyle& style) { return style.name == name; });
  if (known != std::end(styles)) {
    SpanStyle style = known->style;
    style.order = static_cast<int>(known - styles);
    return style;
  }
  // Stages of other transforms: one of a few, always the same for a name.
  constexpr std::array<SpanStyle, 3> others = {
      {{"kind-other", 0.85}, {"kind-other-2", 0.55}, {"kind-other-3", 0.3}}};
  unsigned sum = 0;
  for (const char letter : name) sum = 31 * sum + static_cast<unsigned char>(letter);
  return others[sum % others.size()];
}

}  // namespace millrace::cli
