// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <sstream>
#include <string>
#include <vector>

#include "loader/pipeline/order/global_sequence.h"

namespace millrace::testing {

/// Returns one line per layout of the work on this process's nodes, and per run that was resumed
/// from it, at 5 positions each: "HASH 2 pools, 4 workers, prefetch 1, world 3, resumed after 7". A
/// hash covers the global batches of two epochs, including those before the resume position.
inline std::string hash_batches() {
  std::ostringstream text;
  Random random(2026, 1);
  for (const unsigned workers : {1U, 2U, 4U}) {
    SmallRun run(53);
    run.options.epochs = 2;
    run.options.ranks.global_batch_size = 12;
    run.workers(workers);
    for (const std::size_t prefetch : {1U, 4U}) {
      run.options.slots.prefetch = prefetch;
      for (const std::uint32_t world : {1U, 2U, 3U, 4U}) {
        const auto line = [&](const std::vector<BatchContents>& batches) -> std::ostream& {
          return text << std::hex << std::setw(16) << std::setfill('0') << hash_of(batches)
                      << std::dec << ' ' << run.options.runtime->pools().size() << " pools, "
                      << workers << " workers, prefetch " << prefetch << ", world " << world;
        };
        const std::vector<BatchContents> whole = global_sequence(run, world);
        line(whole) << '\n';
        for (int resumed = 0; resumed < 5; ++resumed) {
          const std::size_t done = 1 + random.below(whole.size() - 1);
          std::vector<BatchContents> spliced(whole.begin(),
                                             whole.begin() + static_cast<std::ptrdiff_t>(done));
          append(spliced, global_sequence(run, world, spliced.back().after));
          line(spliced) << ", resumed after " << done << '\n';
        }
      }
    }
  }
  return text.str();
}

}  // namespace millrace::testing
