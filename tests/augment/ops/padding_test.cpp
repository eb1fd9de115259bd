// SPDX-License-Identifier: Apache-2.0
//
// Borders, windows of them, several windows of one image and flips, compared with this machine's
// torchvision.
#include <gtest/gtest.h>
#include <millrace/image_transform.h>

#include <fstream>

#include "support/recipe_text.h"
#include "support/run_program.h"
#include "support/sample_maker.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::Image;
using testing::Maker;
using testing::operations_of;
using testing::why_no_list;

constexpr int padding_cases = 900;

struct PaddingCase {
  std::int32_t recipe_bytes, jpeg_bytes, width, height, mirrored, flipped;
};

/// Returns the window of `image` at (left, top), flipped as the case says.
Image window_at(const Image& image, Size size, int left, int top, const PaddingCase& one) {
  Image window = testing::cut(image, {left, top, size.width, size.height});
  const Image before = window;
  for (int y = 0; y < size.height; ++y)
    for (int x = 0; x < size.width; ++x)
      std::memcpy(&window.pixels[testing::at(window, x, y)],
                  &before.pixels[testing::at(window, one.mirrored ? size.width - 1 - x : x,
                                             one.flipped ? size.height - 1 - y : y)],
                  3);
  return window;
}

TEST(Padding, MakesThePixelsOfTorchvision) {
  const testing::TemporaryFolder folder;
  const std::string path = (folder / "cases").string();
  const auto python = testing::run_program(
      {"/usr/bin/python3", MILLRACE_LIVE_PADDING, path, std::to_string(padding_cases)});
  if (python.exit_code == 77) GTEST_SKIP() << "no torchvision (python3-torchvision)";
  ASSERT_EQ(python.exit_code, 0) << python.err;

  std::ifstream file(path, std::ios::binary);
  const auto read = [&](void* to, std::size_t bytes) {
    ASSERT_TRUE(file.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes)));
  };
  for (int n = 0; n < padding_cases; ++n) {
    PaddingCase one{};
    read(&one, sizeof one);
    std::string json(static_cast<std::size_t>(one.recipe_bytes), ' ');
    read(json.data(), json.size());
    Bytes jpeg(static_cast<std::size_t>(one.jpeg_bytes));
    read(jpeg.data(), jpeg.size());
    Image padded = testing::cut({}, {0, 0, one.width, one.height});
    read(padded.pixels.data(), padded.pixels.size());

    const Recipe recipe = Recipe::from_json(json);
    EXPECT_EQ(Recipe::from_json(recipe.to_json()), recipe);
    Maker maker(recipe);
    Random random(7, static_cast<std::uint64_t>(n));
    Random same = random;
    ASSERT_TRUE(maker.make(jpeg, 0, random).is_ok()) << json;
    if (maker.transform().spec().fields()[0].shape.rank() == 4) {
      ASSERT_TRUE(maker.image().pixels == padded.pixels) << "case " << n << ": " << json;
      continue;
    }
    const auto place = [&](int free) {
      return static_cast<int>(same.below(static_cast<std::uint64_t>(free) + 1));
    };
    const int top = place(one.height - recipe.output.height);
    const int left = place(one.width - recipe.output.width);
    ASSERT_TRUE(maker.image().pixels == window_at(padded, recipe.output, left, top, one).pixels)
        << "case " << n << ": " << json;
  }
}

TEST(Padding, RefusesAnImageThatIsTooSmall) {
  Random random(1, 1);
  const Bytes encoded = testing::encode(testing::noise(30, 20, 1), {});
  Maker maker({{32, 20}, {RandomCrop{}}});
  const Status status = maker.make(encoded, 0, random);
  EXPECT_FALSE(status.is_ok());
  EXPECT_EQ(status.reason(),
            "random_crop cannot take 32 x 20 of an image of 30 x 20; \"pad_if_needed\" would make "
            "it larger");
  Maker padding({{32, 20}, {RandomCrop{.padding = {1, 0, 1, 0}}}});
  EXPECT_TRUE(padding.make(encoded, 0, random).is_ok());
}

TEST(Padding, ComesThroughJson) {
  for (const auto& [op, json] : std::initializer_list<std::pair<Operation, std::string>>{
           {Pad{.padding = {1, 2, 3, 4}, .fill = {5, 6, 7}},
            R"({"op":"pad","padding":[1,2,3,4],"fill":[5,6,7]})"},
           {Pad{.padding = {}, .fill = {}, .padding_mode = PaddingMode::edge},
            R"({"op":"pad","padding":[0,0,0,0],"fill":[0,0,0],"padding_mode":"edge"})"},
           {RandomCrop{.padding = {4, 4, 4, 4}, .padding_mode = PaddingMode::reflect},
            R"({"op":"random_crop","padding":[4,4,4,4],"fill":[0,0,0],"padding_mode":"reflect",)"
            R"("pad_if_needed":false})"},
           {Resize{.exact = {30, 20}}, R"({"op":"resize","size":[30,20]})"},
           {RandomVerticalFlip{.p = 0.25}, R"({"op":"random_vertical_flip","p":0.25})"}}) {
    EXPECT_EQ(op.to_json(), json);
    const bool makes_output = json.find("random_crop") != std::string::npos;
    const bool flips = json.find("flip") != std::string::npos;
    std::string list = json;
    if (flips) list = R"({"op": "center_crop"}, )" + json;
    if (!flips && !makes_output) list += R"(, {"op": "center_crop"})";
    EXPECT_EQ(operations_of("[" + list + "]")[flips ? 1 : 0], op);
  }
}

TEST(Padding, NamesWhatIsWrong) {
  const std::string center = R"(, {"op": "center_crop"})";
  const std::string place = "train.json: ops[0] (pad): ";
  for (const auto& [ops, why] : std::initializer_list<std::pair<std::string, std::string>>{
           {R"({"op": "pad", "padding": -1})" + center,
            place + R"("padding" is -1, must be in 0..16384)"},
           {R"({"op": "pad", "padding": [1, 2, 3]})" + center,
            place + R"("padding" is [1,2,3], must be one, two or four integers, )" +
                "[left, top, right, bottom]"},
           {R"({"op": "pad", "padding": 1.5})" + center,
            place + R"("padding" is 1.5, must be one, two or four integers, )" +
                "[left, top, right, bottom]"},
           {R"({"op": "pad", "padding_mode": "wrap"})" + center,
            place + R"("padding_mode" is "wrap", must be "constant" or "edge" or "reflect" or )" +
                R"("symmetric")"},
           {R"({"op": "pad", "fill": 300})" + center,
            place + R"("fill" is 300, must be in 0..255)"},
           {R"({"op": "center_crop"}, {"op": "pad"})",
            "train.json: ops[1] (pad) cannot be folded with ops[0] (center_crop), which makes the "
            "output already"},
           {R"({"op": "pad"}, {"op": "resize"})" + center,
            "train.json: ops[1] (resize) cannot be folded with the operations before it: a border "
            "would be resampled"},
           {R"({"op": "pad"}, {"op": "random_resized_crop"})",
            "train.json: ops[1] (random_resized_crop) cannot be folded with the operations before "
            "it: "
            "a border would be resampled"},
           {R"({"op": "pad"}, {"op": "exif_transpose"})" + center,
            "train.json: ops[1] (exif_transpose) cannot be folded with the operations before it: "
            "the "
            "image must be turned before it gets a border"},
           {R"({"op": "pad"})",
            "train.json: no operation makes an image of the output's size; random_resized_crop, "
            "random_crop and center_crop do"}})
    EXPECT_EQ(why_no_list("[" + ops + "]"), why);
  EXPECT_THROW(image_transform({{8, 8}, {Pad{.padding = {-1, 0, 0, 0}}, CenterCrop{}}}), Error);
  EXPECT_THROW(image_transform({{8, 8}, {Resize{.exact = {8, 0}}, CenterCrop{}}}), Error);
}

}  // namespace
}  // namespace millrace
