// SPDX-License-Identifier: Apache-2.0
//
// The recipes that well-known models were trained and evaluated with.
#include <millrace/error.h>
#include <millrace/recipe.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "ops/image_operation.h"

namespace millrace {
namespace {

struct Preset {
  /// Name and description.
  RecipePreset names;
  /// Default side of the output in pixels.
  int size;
  /// Value of "RESIZE" in `ops` at the default side: the length of the resized shorter side.
  int resize;
  const char* ops;
  /// Empty if batches are not mixed.
  const char* mix;
};

#define MILLRACE_EVAL(interpolation) \
  R"([{"op": "resize", "size": RESIZE)" interpolation R"(}, {"op": "center_crop"}])"
#define MILLRACE_BICUBIC R"(, "interpolation": "bicubic")"
// torchvision erases with 0 after normalisation. This 8-bit colour normalises to about 0.
#define MILLRACE_MEAN R"("value": [124, 116, 104])"

constexpr const char* mix_little = R"({"classes": 1000, "mixup": 0.2, "cutmix": 1.0})";
constexpr const char* mix_much = R"({"classes": 1000, "mixup": 0.8, "cutmix": 1.0})";

// Sources: torchvision's references/classification and the pages of its weights; DeiT III (Touvron
// et al., 2022) and its published commands.
constexpr Preset preset_table[] = {
    {{"train", "random resized crop and flip, as torchvision's first presets"},
     224,
     0,
     R"([{"op": "random_resized_crop"}, {"op": "random_horizontal_flip"}])",
     ""},
    {{"eval", "the shorter side to 256, the centre of 224"}, 224, 256, MILLRACE_EVAL(""), ""},
    {{"resnet", "torchvision's ResNet, weights V2"},
     176,
     0,
     R"([{"op": "random_resized_crop"}, {"op": "random_horizontal_flip"},
         {"op": "trivial_augment_wide", "interpolation": "bilinear"},
         {"op": "random_erasing", "p": 0.1, )" MILLRACE_MEAN "}]",
     mix_little},
    {{"resnet-eval", "evaluation of resnet"}, 224, 232, MILLRACE_EVAL(""), ""},
    {{"vit", "torchvision's ViT, weights V1; evaluated as eval"},
     224,
     0,
     R"([{"op": "random_resized_crop"}, {"op": "random_horizontal_flip"},
         {"op": "rand_augment", "interpolation": "bilinear"}])",
     mix_little},
    {{"swin", "torchvision's Swin transformers"},
     224,
     0,
     R"([{"op": "random_resized_crop")" MILLRACE_BICUBIC
     R"(}, {"op": "random_horizontal_flip"},
         {"op": "trivial_augment_wide")" MILLRACE_BICUBIC R"(},
         {"op": "random_erasing", "p": 0.25, )" MILLRACE_MEAN "}]",
     mix_much},
    {{"swin-eval", "evaluation of torchvision's model swin_t"},
     224,
     232,
     MILLRACE_EVAL(MILLRACE_BICUBIC),
     ""},
    {{"convnext", "torchvision's ConvNeXt"},
     176,
     0,
     R"([{"op": "random_resized_crop"}, {"op": "random_horizontal_flip"},
         {"op": "trivial_augment_wide", "interpolation": "bilinear"},
         {"op": "random_erasing", "p": 0.1, )" MILLRACE_MEAN "}]",
     mix_little},
    {{"convnext-eval", "evaluation of torchvision's model convnext_tiny"},
     224,
     236,
     MILLRACE_EVAL(""),
     ""},
    {{"deit3", "DeiT III on ImageNet-1k"},
     224,
     0,
     R"([{"op": "random_resized_crop")" MILLRACE_BICUBIC
     R"(}, {"op": "random_horizontal_flip"}, {"op": "three_augment"},
         {"op": "color_jitter", "brightness": [0.7, 1.3], "contrast": [0.7, 1.3],
          "saturation": [0.7, 1.3]}])",
     mix_much},
    {{"deit3-simple", "DeiT III with its simple random crop, as on ImageNet-21k"},
     224,
     224,
     R"([{"op": "resize", "size": RESIZE)" MILLRACE_BICUBIC
     R"(}, {"op": "random_crop", "padding": [4, 4, 4, 4], "padding_mode": "reflect"},
         {"op": "random_horizontal_flip"}, {"op": "three_augment"},
         {"op": "color_jitter", "brightness": [0.7, 1.3], "contrast": [0.7, 1.3],
          "saturation": [0.7, 1.3]}])",
     ""},
    {{"deit3-eval", "evaluation of DeiT III"}, 224, 224, MILLRACE_EVAL(MILLRACE_BICUBIC), ""},
};

#undef MILLRACE_EVAL
#undef MILLRACE_BICUBIC
#undef MILLRACE_MEAN

std::string json_of(const Preset& preset, int size) {
  std::string ops = preset.ops;
  if (const std::size_t at = ops.find("RESIZE"); at != std::string::npos) {
    const double resize = std::round(static_cast<double>(size) * preset.resize / preset.size);
    ops.replace(at, 6, std::to_string(static_cast<int>(std::min<double>(resize, largest_side))));
  }
  const std::string side = std::to_string(size);
  return R"({"output": [)" + side + ", " + side + R"(], "ops": )" + ops +
         (*preset.mix == '\0' ? "" : std::string(R"(, "mix": )") + preset.mix) + "}";
}

}  // namespace

std::vector<RecipePreset> Recipe::presets() {
  std::vector<RecipePreset> presets;
  for (const Preset& preset : preset_table) presets.push_back(preset.names);
  return presets;
}

Recipe Recipe::preset(std::string_view name, std::optional<int> size) {
  std::string names;
  for (const Preset& preset : preset_table) {
    if (name == preset.names.name)
      return from_json(json_of(preset, size.value_or(preset.size)), preset.names.name);
    names += std::string(names.empty() ? "" : ", ") + preset.names.name;
  }
  throw Error(ErrorCode::not_found,
              "there is no recipe preset \"" + std::string(name) + "\"; there are " + names);
}

Recipe Recipe::train(int size) { return preset("train", size); }
Recipe Recipe::eval(int size) { return preset("eval", size); }

}  // namespace millrace
