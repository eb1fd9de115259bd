// SPDX-License-Identifier: Apache-2.0
#include "sample_images.h"

#include <utility>

#include "crop_stage.h"
#include "targets/targets.h"

namespace millrace {
namespace {

FieldSpec field_of(const std::string& name, Size output, std::size_t images) {
  const Shape image{static_cast<std::size_t>(output.height), static_cast<std::size_t>(output.width),
                    3};
  return {name, DType::uint8, images > 1 ? image.with_outer(images) : image};
}

}  // namespace

SampleImages::SampleImages(const Recipe& recipe) {
  programs.emplace_back(recipe.output, recipe.ops, recipe.like);
  const auto views = static_cast<std::size_t>(main().views());
  std::vector<FieldSpec> fields{field_of("image", recipe.output, views)};
  for (std::size_t number = 0; number < views; ++number)
    all.push_back({0, recipe.output, 0, number, 0});
  for (FieldSpec& field : fields_of(recipe.targets, recipe.output))
    fields.push_back(std::move(field));
  for (FieldSpec& field : main().fields()) fields.push_back(std::move(field));
  std::uint32_t stream = 0;
  for (const View& view : recipe.views) {
    const auto count = static_cast<std::size_t>(view.count);
    for (std::size_t number = 0; number < count; ++number)
      all.push_back({programs.size(), view.output, fields.size(), number, ++stream});
    programs.emplace_back(view.output, view.ops, recipe.like);
    fields.push_back(field_of(view.field, view.output, count));
  }
  encoded.push_back({"image", 0, all.size()});
  for (const RecordImage& image : recipe.images) {
    const std::uint32_t draws = image.draws == Draws::own ? ++stream : 0;
    encoded.push_back({image.field, all.size(), views});
    for (std::size_t number = 0; number < views; ++number)
      all.push_back({0, recipe.output, fields.size(), number, draws});
    fields.push_back(field_of(image.field, recipe.output, views));
  }
  if (recipe.decode_on == DecodeOn::device) {
    packed = fields.size();
    fields.front().device_stages = {crop_stage(recipe.output, *packed)};
    fields.push_back({"packed", DType::uint8, {}});
  }
  spec = SampleSpec(std::move(fields));
}

}  // namespace millrace
