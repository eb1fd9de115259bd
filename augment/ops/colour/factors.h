// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/geometry.h>

namespace millrace {

/// The limits of an `Adjustment`'s factor.
inline constexpr Range any_factor{0, 1e6};
inline constexpr Range any_hue{-0.5, 0.5};

}  // namespace millrace
