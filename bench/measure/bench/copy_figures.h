// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "measure/text/figures.h"

namespace millrace::cli {

struct BenchRecord;

inline Figures::Json percent_json(std::optional<double> share) {
  return share ? Figures::Json(100 * *share) : Figures::Json();
}

/// Adds the rate of the pipeline's copies, and that rate as a share of plain copies.
void add_copy_figures(Figures& figures, const BenchRecord& record);

}  // namespace millrace::cli
