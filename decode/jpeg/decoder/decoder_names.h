// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>

namespace millrace {

/// Name of the decoder of an image at 1/2, 1/4 or 1/8 of its resolution.
inline const char* reduced_name(bool by_stages, int reduction) {
  constexpr const char* names[2][3] = {
      {"libjpeg-turbo (reduced to 1/2)", "libjpeg-turbo (reduced to 1/4)",
       "libjpeg-turbo (reduced to 1/8)"},
      {"millrace (reduced to 1/2)", "millrace (reduced to 1/4)", "millrace (reduced to 1/8)"}};
  return names[by_stages ? 1 : 0][std::countr_zero(static_cast<unsigned>(reduction)) - 1];
}

/// Name of the decoder of an image with stray bytes.
inline const char* repaired_name(bool by_stages, bool arithmetic, bool progressive) {
  if (by_stages) return "millrace (repaired)";
  if (arithmetic) return "libjpeg-turbo (arithmetic coding, repaired)";
  return progressive ? "libjpeg-turbo (progressive, repaired)" : "libjpeg-turbo (repaired)";
}

}  // namespace millrace
