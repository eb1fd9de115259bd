// SPDX-License-Identifier: Apache-2.0
//
// A recipe takes the parameters of torchvision's constructors, in each form that they take.
#include <gtest/gtest.h>
#include <millrace/recipe.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "pixels/blur.h"
#include "support/recipe_text.h"

namespace millrace {
namespace {

using testing::why_no_list;
using testing::why_not;

/// The parameters of the constructors in torchvision 0.29.2, of `transforms` and `transforms.v2`,
/// without "self".
using Signature = std::vector<std::string>;
const std::map<std::string, Signature>& signatures() {
  static const std::map<std::string, Signature> all{
      {"resize", {"size", "interpolation", "max_size", "antialias"}},
      {"center_crop", {"size"}},
      {"pad", {"padding", "fill", "padding_mode"}},
      {"random_crop", {"size", "padding", "pad_if_needed", "fill", "padding_mode"}},
      {"random_horizontal_flip", {"p"}},
      {"random_vertical_flip", {"p"}},
      {"random_perspective", {"distortion_scale", "p", "interpolation", "fill"}},
      {"random_resized_crop", {"size", "scale", "ratio", "interpolation", "antialias"}},
      {"five_crop", {"size"}},
      {"ten_crop", {"size", "vertical_flip"}},
      {"color_jitter", {"brightness", "contrast", "saturation", "hue"}},
      {"random_rotation", {"degrees", "interpolation", "expand", "center", "fill"}},
      {"random_affine",
       {"degrees", "translate", "scale", "shear", "interpolation", "fill", "center"}},
      {"grayscale", {"num_output_channels"}},
      {"random_grayscale", {"p"}},
      {"random_erasing", {"p", "scale", "ratio", "value", "inplace"}},
      {"gaussian_blur", {"kernel_size", "sigma"}},
      {"random_invert", {"p"}},
      {"random_posterize", {"bits", "p"}},
      {"random_solarize", {"threshold", "p"}},
      {"random_adjust_sharpness", {"sharpness_factor", "p"}},
      {"random_autocontrast", {"p"}},
      {"random_equalize", {"p"}},
      {"random_apply", {"transforms", "p"}},
      {"random_choice", {"transforms", "p"}},
      {"auto_augment", {"policy", "interpolation", "fill"}},
      {"rand_augment", {"num_ops", "magnitude", "num_magnitude_bins", "interpolation", "fill"}},
      {"trivial_augment_wide", {"num_magnitude_bins", "interpolation", "fill"}},
      {"aug_mix",
       {"severity", "mixture_width", "chain_depth", "alpha", "all_ops", "interpolation", "fill"}}};
  return all;
}

struct Form {
  const char* op;
  const char* parameter;
  /// The value in torchvision.
  const char* value;
  /// The value in the recipe; "" if the recipe leaves it out, nullptr if it is `value`.
  const char* written;
};

constexpr const char* grey = R"([{"op":"grayscale"},{"op":"random_invert","p":0.5}])";

const std::vector<Form>& forms() {
  static const std::vector<Form> all{
      {"resize", "size", "224", nullptr},
      {"resize", "size", "[224]", "224"},
      {"resize", "max_size", "300", nullptr},
      {"resize", "max_size", "null", ""},
      {"resize", "interpolation", R"("bicubic")", nullptr},
      {"resize", "interpolation", R"("nearest-exact")", R"("nearest")"},
      {"resize", "interpolation", "0", R"("nearest")"},
      {"resize", "interpolation", "1", R"("lanczos")"},
      {"resize", "interpolation", "2", ""},
      {"resize", "interpolation", "3", R"("bicubic")"},
      {"resize", "interpolation", "4", R"("box")"},
      {"resize", "interpolation", "5", R"("hamming")"},
      {"resize", "antialias", "true", ""},
      {"resize", "antialias", "false", ""},
      {"resize", "antialias", "null", ""},
      {"pad", "padding", "3", "[3,3,3,3]"},
      {"pad", "padding", "[3]", "[3,3,3,3]"},
      {"pad", "padding", "[3, 4]", "[3,4,3,4]"},
      {"pad", "padding", "[1, 2, 3, 4]", "[1,2,3,4]"},
      {"pad", "fill", "7", "[7,7,7]"},
      {"pad", "fill", "7.0", "[7,7,7]"},
      {"pad", "fill", "[7]", "[7,7,7]"},
      {"pad", "fill", "[1.0, 2.0, 3.0]", "[1,2,3]"},
      {"pad", "padding_mode", R"("reflect")", nullptr},
      {"random_crop", "padding", "null", "[0,0,0,0]"},
      {"random_crop", "padding", "4", "[4,4,4,4]"},
      {"random_crop", "pad_if_needed", "true", nullptr},
      {"random_crop", "fill", "9", "[9,9,9]"},
      {"random_crop", "padding_mode", R"("edge")", nullptr},
      {"random_horizontal_flip", "p", "1", "1.0"},
      {"random_vertical_flip", "p", "0.25", nullptr},
      {"random_perspective", "distortion_scale", "0.25", nullptr},
      {"random_perspective", "p", "0.25", nullptr},
      {"random_perspective", "interpolation", R"("nearest")", nullptr},
      {"random_perspective", "interpolation", "3", R"("bicubic")"},
      {"random_perspective", "fill", "5", "[5,5,5]"},
      {"random_resized_crop", "scale", "[0.2, 1.0]", "[0.2,1.0]"},
      {"random_resized_crop", "ratio", "[0.5, 2]", "[0.5,2.0]"},
      {"random_resized_crop", "interpolation", "3", R"("bicubic")"},
      {"random_resized_crop", "antialias", "true", ""},
      {"ten_crop", "vertical_flip", "true", nullptr},
      {"color_jitter", "brightness", "0.4", "[0.6,1.4]"},
      {"color_jitter", "brightness", "2", "[0.0,3.0]"},
      {"color_jitter", "brightness", "0", "[1.0,1.0]"},
      {"color_jitter", "brightness", "null", "[1.0,1.0]"},
      {"color_jitter", "brightness", "[0.5, 1.5]", "[0.5,1.5]"},
      {"color_jitter", "contrast", "0.25", "[0.75,1.25]"},
      {"color_jitter", "saturation", "0.25", "[0.75,1.25]"},
      {"color_jitter", "hue", "0.1", "[-0.1,0.1]"},
      {"color_jitter", "hue", "[-0.2, 0.1]", "[-0.2,0.1]"},
      {"color_jitter", "hue", "null", "[0.0,0.0]"},
      {"random_rotation", "degrees", "15", "[-15.0,15.0]"},
      {"random_rotation", "degrees", "[5, 15]", "[5.0,15.0]"},
      {"random_rotation", "interpolation", R"("bilinear")", nullptr},
      {"random_rotation", "interpolation", "2", R"("bilinear")"},
      {"random_rotation", "expand", "false", ""},
      {"random_rotation", "center", "null", ""},
      {"random_rotation", "fill", "null", "[0,0,0]"},
      {"random_affine", "degrees", "15", "[-15.0,15.0]"},
      {"random_affine", "degrees", "[5, 15]", "[5.0,15.0]"},
      {"random_affine", "translate", "[0.1, 0.2]", "[0.1,0.2]"},
      {"random_affine", "translate", "null", "[0.0,0.0]"},
      {"random_affine", "scale", "[0.5, 2]", "[0.5,2.0]"},
      {"random_affine", "scale", "null", "[1.0,1.0]"},
      {"random_affine", "shear", "10", "[-10.0,10.0]"},
      {"random_affine", "shear", "[5, 10]", "[5.0,10.0]"},
      {"random_affine", "shear", "[5, 10, -5, 5]", "[5.0,10.0,-5.0,5.0]"},
      {"random_affine", "shear", "null", "[0.0,0.0]"},
      {"random_affine", "interpolation", R"("bicubic")", nullptr},
      {"random_affine", "fill", "8", "[8,8,8]"},
      {"random_affine", "center", "null", ""},
      {"grayscale", "num_output_channels", "3", ""},
      {"random_grayscale", "p", "0.25", nullptr},
      {"random_erasing", "p", "0.25", nullptr},
      {"random_erasing", "scale", "[0.1, 0.2]", "[0.1,0.2]"},
      {"random_erasing", "ratio", "[0.5, 2]", "[0.5,2.0]"},
      {"random_erasing", "value", "0", "[0,0,0]"},
      {"random_erasing", "value", "127.0", "[127,127,127]"},
      {"random_erasing", "value", "[127]", "[127,127,127]"},
      {"random_erasing", "value", "[1, 2, 3]", "[1,2,3]"},
      {"random_erasing", "inplace", "true", ""},
      {"gaussian_blur", "kernel_size", "5", nullptr},
      {"gaussian_blur", "kernel_size", "[5]", "5"},
      {"gaussian_blur", "kernel_size", "[5, 5]", "5"},
      {"gaussian_blur", "kernel_size", "[5, 9]", "[5,9]"},
      {"gaussian_blur", "sigma", "1.5", "[1.5,1.5]"},
      {"gaussian_blur", "sigma", "[1.5]", "[1.5,1.5]"},
      {"gaussian_blur", "sigma", "[0.1, 2]", "[0.1,2.0]"},
      {"random_invert", "p", "0.25", nullptr},
      {"random_posterize", "bits", "4", nullptr},
      {"random_posterize", "p", "0.25", nullptr},
      {"random_solarize", "threshold", "128", "128.0"},
      {"random_solarize", "p", "0.25", nullptr},
      {"random_adjust_sharpness", "sharpness_factor", "2", "2.0"},
      {"random_adjust_sharpness", "p", "0.25", nullptr},
      {"random_autocontrast", "p", "0.25", nullptr},
      {"random_equalize", "p", "0.25", nullptr},
      {"random_apply", "transforms", grey, nullptr},
      {"random_apply", "p", "0.25", nullptr},
      {"random_choice", "transforms", grey, nullptr},
      {"random_choice", "p", "null", ""},
      {"random_choice", "p", "[3, 1]", "[3.0,1.0]"},
      {"auto_augment", "policy", R"("svhn")", nullptr},
      {"auto_augment", "interpolation", "2", R"("bilinear")"},
      {"auto_augment", "fill", "null", "[0,0,0]"},
      {"auto_augment", "fill", "[128, 128, 128]", "[128,128,128]"},
      {"rand_augment", "num_ops", "3", nullptr},
      {"rand_augment", "magnitude", "7", nullptr},
      {"rand_augment", "num_magnitude_bins", "11", nullptr},
      {"rand_augment", "interpolation", R"("bilinear")", nullptr},
      {"rand_augment", "fill", "null", "[0,0,0]"},
      {"trivial_augment_wide", "num_magnitude_bins", "11", nullptr},
      {"trivial_augment_wide", "interpolation", R"("bilinear")", nullptr},
      {"trivial_augment_wide", "fill", "[128]", "[128,128,128]"},
      {"aug_mix", "severity", "4", nullptr},
      {"aug_mix", "mixture_width", "4", nullptr},
      {"aug_mix", "chain_depth", "2", nullptr},
      {"aug_mix", "alpha", "0.5", nullptr},
      {"aug_mix", "all_ops", "false", nullptr},
      {"aug_mix", "interpolation", R"("nearest")", nullptr},
      {"aug_mix", "fill", "null", "[0,0,0]"}};
  return all;
}

bool makes_output(const std::string& op) { return op.ends_with("_crop"); }

/// Returns a recipe's list with the operation, which has this member and all required ones.
std::string list_of(const std::string& op, const std::string& parameter, const std::string& value) {
  std::string members;
  const auto add = [&](const std::string& key, const std::string& text) {
    if (key == parameter || (key == "ops" && parameter == "transforms")) return;
    members += ", \"" + key + "\": " + text;
  };
  if (op == "gaussian_blur") add("kernel_size", "3");
  if (op == "random_solarize") add("threshold", "1");
  if (op == "random_posterize") add("bits", "1");
  if (op == "random_adjust_sharpness") add("sharpness_factor", "1");
  if (op == "random_apply" || op == "random_choice") add("ops", grey);
  const std::string one =
      R"({"op": ")" + op + '"' + members + ", \"" + parameter + "\": " + value + "}";
  if (makes_output(op)) return "[" + one + "]";
  const bool is_geometric = op == "resize" || op == "pad";
  return is_geometric ? "[" + one + R"(, {"op": "center_crop"}])"
                      : R"([{"op": "center_crop"}, )" + one + "]";
}

/// Returns the parameter in the recipe's own JSON; "" if it is left out.
std::string written(const std::string& op, const std::string& parameter, const std::string& value) {
  const std::size_t place = makes_output(op) || op == "resize" || op == "pad" ? 0 : 1;
  const auto json = nlohmann::ordered_json::parse(
      testing::operations_of(list_of(op, parameter, value)).at(place).to_json());
  const auto member = json.find(parameter == "transforms" ? "ops" : parameter);
  return member == json.end() ? std::string() : member->dump();
}

TEST(TorchvisionForms, AreRead) {
  for (const Form& form : forms()) {
    SCOPED_TRACE(list_of(form.op, form.parameter, form.value));
    ASSERT_EQ(why_no_list(list_of(form.op, form.parameter, form.value)), "accepted");
    EXPECT_EQ(written(form.op, form.parameter, form.value),
              form.written == nullptr ? form.value : form.written);
  }
}

TEST(TorchvisionForms, CoverEveryParameter) {
  for (const auto& [op, parameters] : signatures())
    for (const std::string& parameter : parameters) {
      if (parameter == "size" && makes_output(op)) continue;  // GiveTheOutput
      EXPECT_TRUE(std::ranges::any_of(forms(),
                                      [&, name = op](const Form& form) {
                                        return form.op == name && form.parameter == parameter;
                                      }))
          << op << ": " << parameter;
    }
}

TEST(TorchvisionForms, GiveTheOutput) {
  for (const char* op :
       {"center_crop", "five_crop", "ten_crop", "random_crop", "random_resized_crop"})
    for (const char* size : {"96", "[96]", "[96, 96]"}) {
      const Recipe recipe = Recipe::from_json(R"({"ops": )" + list_of(op, "size", size) + "}");
      EXPECT_EQ(recipe.output, (Size{96, 96})) << op << size;
      EXPECT_EQ(recipe, Recipe::from_json(recipe.to_json()));
    }
  const std::string crop = R"("ops": [{"op": "center_crop", "size": 96}])";
  EXPECT_EQ(why_not(R"({"output": [96, 96], )" + crop + "}"), "accepted");
  EXPECT_EQ(why_not(R"({"output": [96, 80], )" + crop + "}"),
            "train.json: ops[0] (center_crop) has \"size\" 96 and the recipe \"output\" [96,80]; "
            "leave one out");
  EXPECT_EQ(
      why_not(R"({"ops": [{"op": "center_crop", "size": 96}, {"op": "random_crop", "size": 64}]})"),
      "train.json: ops[1] (random_crop) has \"size\" 64 and ops[0] (center_crop) \"size\" 96; "
      "leave one out");
  EXPECT_EQ(why_no_list(R"([{"op": "center_crop", "size": [96, 80]}])"),
            "train.json: ops[0] (center_crop): \"size\" is [96,80], must be one number; give a "
            "size that is not square as the recipe's \"output\", [width, height]");
}

TEST(TorchvisionForms, ThatMakeOtherImagesAreRefused) {
  const auto why = [](const char* op, const char* parameter, const char* value) {
    const std::string message = why_no_list(list_of(op, parameter, value));
    const std::size_t end = message.find("): ");
    return end == std::string::npos ? message : message.substr(end + 3);
  };
  EXPECT_EQ(why("random_rotation", "expand", "true"), "\"expand\" is true, must be false");
  EXPECT_EQ(why("random_rotation", "center", "[1, 2]"), "\"center\" is [1,2], must be null");
  EXPECT_EQ(why("grayscale", "num_output_channels", "1"),
            "\"num_output_channels\" is 1, must be 3");
  EXPECT_EQ(why("random_erasing", "value", R"("random")"),
            "\"value\" is \"random\", must be an integer, or three, [red, green, blue]");
  EXPECT_EQ(why("pad", "fill", "0.5"),
            "\"fill\" is 0.5, must be an integer, or three, [red, green, blue]");
  EXPECT_EQ(why("color_jitter", "brightness", "-1"),
            "\"brightness\" is -1, must be 0 or above, or two numbers, [low, high]");
  EXPECT_EQ(why("resize", "size", "null"),
            "\"size\" is null, must be an integer, or two, [width, height]");
  EXPECT_EQ(why("resize", "max_size", "256"), "\"max_size\" is 256, must be in 257..16384");
  EXPECT_EQ(why("resize", "size", R"([300, 200], "max_size": 400)"),
            "\"max_size\" is 400, must be left out where \"size\" has two numbers");
  EXPECT_EQ(why("random_choice", "p", "[1]"),
            "\"p\" is [1], must be a weight for each operation, one of them above 0");
  EXPECT_EQ(why("random_choice", "p", "[0, 0]"),
            "\"p\" is [0,0], must be a weight for each operation, one of them above 0");
  EXPECT_EQ(why("random_apply", "transforms", R"([], "ops": [])"),
            "\"ops\" and \"transforms\" are the same parameter; leave one out");
}

TEST(TorchvisionForms, OfAKernelBlurEachAxisByItsOwn) {
  constexpr Size size{20, 12};
  constexpr std::size_t row_bytes = 3 * std::size_t{size.width};
  std::vector<std::uint8_t> stripes(row_bytes * size.height);
  for (std::size_t n = 0; n < stripes.size(); ++n) stripes[n] = n / row_bytes % 2 == 0 ? 0 : 250;
  const auto blurred = [&](Size kernel) {
    std::vector<std::uint8_t> pixels = stripes;
    std::vector<std::uint8_t> memory(gaussian_blur_memory(size, kernel));
    gaussian_blur(pixels.data(), size, kernel, 2, memory);
    return pixels;
  };
  EXPECT_EQ(blurred({9, 1}), stripes);
  EXPECT_NE(blurred({1, 9}), stripes);
  EXPECT_EQ(blurred({5, 9}), blurred({1, 9}));
}

}  // namespace
}  // namespace millrace
