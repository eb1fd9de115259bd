// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/sample_geometry.h>
#include <millrace/error.h>

#include "ops/program.h"

namespace millrace {

SampleGeometry sample_geometry(const Recipe& recipe, Size stored, int orientation, Random& random) {
  recipe.validate();
  const ResamplePlan plan =
      Program(recipe.output, recipe.ops, recipe.like).plan(stored, orientation, random);
  if (!plan.problem.empty()) throw Error(ErrorCode::bad_record, plan.problem);
  const Resampling& resampling = plan.resampling;
  const Region& window = resampling.window;
  const double across = static_cast<double>(resampling.from.width) / resampling.to.width;
  const double down = static_cast<double>(resampling.from.height) / resampling.to.height;
  return {.image = plan.image,
          .left = plan.box.x + across * window.x,
          .top = plan.box.y + down * window.y,
          .right = plan.box.x + across * (window.x + window.width),
          .bottom = plan.box.y + down * (window.y + window.height),
          .mirrored = resampling.mirrored,
          .flipped = resampling.flipped};
}

}  // namespace millrace
