// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/mix.h>

#include <string_view>

#include "ops/image_operation.h"

namespace millrace {

/// Passes every parameter to `parameters`.
inline void describe(Parameters& parameters, Mix& mix) {
  constexpr const char* places[] = {"worker", "device"};  // of `MixOn`
  constexpr Range alphas{0, 100};
  parameters.integer("classes", mix.classes, 2, 1 << 20);
  parameters.number("mixup", mix.mixup, alphas);
  parameters.number("cutmix", mix.cutmix, alphas);
  parameters.number("cutmix_share", mix.cutmix_share, {0, 1});
  parameters.number("p", mix.p, {0, 1});
  parameters.named("on", mix.on, places);
}

/// Throws `Error` (`invalid_argument`), which names the first value out of range; `source` names
/// its place in the message.
void check_mix(const Mix& mix, std::string_view source);

}  // namespace millrace
