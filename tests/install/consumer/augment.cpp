// SPDX-License-Identifier: Apache-2.0
#include <millrace/image_transform.h>

int main() {
  const auto recipe = millrace::Recipe::from_json(
      R"({"output": [64, 32], "ops": [{"op": "resize"}, {"op": "center_crop"}]})");
  const auto transform = millrace::image_transform(recipe);
  return transform->spec().fields().at(0).shape == millrace::Shape{32, 64, 3} &&
                 transform->make_worker()
             ? 0
             : 1;
}
