// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "measure/text/text.h"

namespace millrace::cli {

/// A record that cannot be read, or whose data is damaged.
struct BadRecord {
  std::uint64_t index = 0;
  std::string key{};
  std::string reason{};
};

/// Number of bad records that commands print by default.
inline constexpr std::size_t max_bad_records_shown = 20;

/// Returns a list of the first `limit` bad records, one a line, with number, key and reason. If
/// there are more, the last line ends with `rest`, which says how to list them. Empty if no record
/// is bad.
inline std::string bad_records_text(const std::vector<BadRecord>& bad, std::size_t limit,
                                    std::string_view rest) {
  if (bad.empty()) return "";
  std::string text = "bad records:\n";
  const std::size_t shown = std::min(limit, bad.size());
  for (std::size_t n = 0; n < shown; ++n)
    text += fmt::format("  {:>8}  {}: {}\n", bad[n].index, printable(bad[n].key),
                        printable(bad[n].reason));
  if (shown < bad.size()) text += fmt::format("  ... and {} more; {}\n", bad.size() - shown, rest);
  return text;
}

}  // namespace millrace::cli
