// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace millrace {

/// Why `encoded` is no JPEG, by its first bytes: "a PNG image; only JPEG is supported". Empty for
/// what begins as a JPEG does.
std::string why_no_jpeg(std::span<const std::byte> encoded);

}  // namespace millrace
