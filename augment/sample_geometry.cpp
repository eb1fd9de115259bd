// SPDX-License-Identifier: Apache-2.0
#include <millrace/error.h>
#include <millrace/sample_geometry.h>

#include "ops/program.h"

namespace millrace {

SampleGeometry sample_geometry(const Recipe& recipe, Size stored, int orientation, Random& random) {
  recipe.validate();
  const Fold fold =
      Program(recipe.output, recipe.ops, recipe.like).fold(stored, orientation, random);
  if (!fold.problem.empty()) throw Error(ErrorCode::bad_record, fold.problem);
  const Resampling& resampling = fold.resampling;
  const Region& window = resampling.window;
  const double across = static_cast<double>(resampling.from.width) / resampling.to.width;
  const double down = static_cast<double>(resampling.from.height) / resampling.to.height;
  return {.image = fold.image,
          .left = fold.box.x + across * window.x,
          .top = fold.box.y + down * window.y,
          .right = fold.box.x + across * (window.x + window.width),
          .bottom = fold.box.y + down * (window.y + window.height),
          .mirrored = resampling.mirrored,
          .flipped = resampling.flipped};
}

}  // namespace millrace
