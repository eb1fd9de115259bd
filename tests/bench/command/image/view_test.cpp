// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/dataset_writer.h>
#include <png.h>

#include <array>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "bench/damaged_files.h"
#include "command/image/canvas.h"
#include "support/packs.h"
#include "support/sample_maker.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace testing;
using cli::Canvas;
using cli::Colour;
using cli::MadeImage;
using Result = RunningProgram::Result;

Image read_png(const std::string& bytes) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  EXPECT_NE(png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()), 0);
  png.format = PNG_FORMAT_RGB;
  Image image{static_cast<int>(png.width), static_cast<int>(png.height), 3, {}};
  image.pixels.resize(PNG_IMAGE_SIZE(png));
  EXPECT_NE(png_image_finish_read(&png, nullptr, image.pixels.data(), 0, nullptr), 0);
  return image;
}

/// Position of an image in another, from the left and from the top; nullopt if it is not in it.
std::optional<Region> place_of(const Image& part, const Image& sheet) {
  for (int y = 0; y + part.height <= sheet.height; ++y)
    for (int x = 0; x + part.width <= sheet.width; ++x) {
      bool equal = true;
      for (int row = 0; equal && row < part.height; ++row)
        equal =
            std::equal(&part.pixels[at(part, 0, row)],
                       &part.pixels[at(part, 0, row)] + 3 * static_cast<std::size_t>(part.width),
                       &sheet.pixels[at(sheet, x, y + row)]);
      if (equal) return Region{x, y, part.width, part.height};
    }
  return {};
}

class View : public ::testing::Test {
 protected:
  View() { write_images(set_, {encoded_, Bytes(30, std::byte{'x'})}); }

  Result view(std::vector<std::string> words) const {
    words.insert(words.begin(), {"view", set_});
    return millrace_command(words);
  }

  const TemporaryFolder folder_;
  const std::string set_ = folder_ / "set.lmdb";
  const Bytes encoded_ = encode(noise(120, 80, 3), {});
};

TEST_F(View, DrawsTheSamplesOfARunBesideTheImage) {
  const std::string file = folder_ / "sheet.png";
  const Result result =
      view({"--record", "0", "--size", "40", "--samples", "4", "--seed", "9", "--png", file});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("record 0 (cat/0.jpg) of "), HasSubstr("0 (cat)"),
                                HasSubstr("sample 3"), HasSubstr(file)));
  const Image sheet = read_png(contents_of(file));
  std::set<std::pair<int, int>> places;
  for (std::uint64_t position = 0; position < 4; ++position) {
    Maker maker(Recipe::train(40));
    Random random(9, position);
    ASSERT_TRUE(maker.make(encoded_, 0, random).is_ok());
    const auto place = place_of(maker.image(), sheet);
    ASSERT_TRUE(place) << position;
    EXPECT_GT(place->x, 120) << "beside the image";
    EXPECT_TRUE(places.insert({place->x, place->y}).second);
  }
}

TEST_F(View, DrawsTheBoxIntoTheImage) {
  const std::string recipe = folder_ / "recipe.json";
  testing::write_text(
      recipe, R"({"output": [20, 10], "ops": [{"op": "resized_crop", "box": [30, 20, 50, 40]}]})");
  const Result result = view({"--record", "0", "--recipe", recipe, "--samples", "1", "--png", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Image sheet = read_png(result.out);
  Image whole = reference_decode(encoded_);
  // The lower part of the image, which the box does not cover, locates it.
  const auto place = place_of(cut(whole, {0, 65, 120, 15}), sheet);
  ASSERT_TRUE(place);
  const int left = place->x + 30;
  const int top = place->y - 65 + 20;
  const Colour colour{230, 159, 0};
  for (const auto& [x, y] : {std::pair{left, top},
                             {left + 49, top},
                             {left, top + 39},
                             {left + 49, top + 39},
                             {left + 25, top},
                             {left, top + 20}})
    EXPECT_TRUE(std::equal(colour.begin(), colour.end(), &sheet.pixels[at(sheet, x, y)]));
  for (const auto& [x, y] : {std::pair{left - 1, top}, {left + 50, top}, {left, top - 1}})
    EXPECT_TRUE(std::equal(&whole.pixels[at(whole, x - place->x, y - place->y + 65)],
                           &whole.pixels[at(whole, x - place->x, y - place->y + 65)] + 3,
                           &sheet.pixels[at(sheet, x, y)]));
}

TEST_F(View, DrawsMasksBoxesAndKeypoints) {
  constexpr int width = 40;
  constexpr int height = 30;
  std::string grey = "P5 40 30 255\n" + std::string(width * height, char{100});
  std::string mask(width * height, char{0});
  for (int y = 0; y < height; ++y) std::fill_n(&mask[static_cast<std::size_t>(y * width)], 8, '\1');
  const std::vector<float> boxes{20, 5, 35, 25};
  const std::vector<std::int64_t> labels{2};
  const std::vector<float> point{12, 20};
  const std::string set = folder_ / "targets.lmdb";
  DatasetWriter writer(set);
  writer.append(std::array{RecordField{"image", std::as_bytes(std::span(grey))},
                           RecordField{"mask", std::as_bytes(std::span(mask))},
                           RecordField{"boxes", std::as_bytes(std::span(boxes))},
                           RecordField{"labels", std::as_bytes(std::span(labels))},
                           RecordField{"point", std::as_bytes(std::span(point))}});
  writer.finish();
  const std::string recipe = folder_ / "recipe.json";
  testing::write_text(recipe, R"({"output": [40, 30], "ops": [{"op": "center_crop"}], "targets": {
      "mask": {"is": "mask"}, "boxes": {"is": "boxes"}, "labels": {"is": "values", "of": "boxes"},
      "point": {"is": "keypoints"}}})");
  const Result result = millrace_command(
      {"view", set, "--record", "0", "--recipe", recipe, "--samples", "1", "--png", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.err;

  Image expected{width, height, 3, std::vector<std::uint8_t>(width * height * 3, 100)};
  const auto paint = [&](const Region& region, const Colour& colour) {
    for (int y = region.y; y < region.y + region.height; ++y)
      for (int x = region.x; x < region.x + region.width; ++x)
        std::ranges::copy(colour, &expected.pixels[at(expected, x, y)]);
  };
  paint({0, 0, 8, height}, {165, 129, 50});
  const Image inside = cut(expected, {22, 7, 11, 16});
  paint({20, 5, 15, 20}, {0, 158, 115});
  for (int y = 0; y < inside.height; ++y)
    std::copy_n(&inside.pixels[at(inside, 0, y)], 3 * inside.width,
                &expected.pixels[at(expected, 22, 7 + y)]);
  paint({11, 19, 3, 3}, {230, 159, 0});
  EXPECT_TRUE(place_of(expected, read_png(result.out)));
}

TEST_F(View, DrawsImagesWithLongerSidesThanRecipesMake) {
  const std::string set = folder_ / "long.lmdb";
  const auto ppm = [](int width, int height) {
    const std::string header =
        "P6 " + std::to_string(width) + " " + std::to_string(height) + " 255\n";
    const std::string pixels(3 * static_cast<std::size_t>(width) * static_cast<std::size_t>(height),
                             char{100});
    const auto bytes = std::as_bytes(std::span(header));
    const auto more = std::as_bytes(std::span(pixels));
    Bytes file(bytes.begin(), bytes.end());
    file.insert(file.end(), more.begin(), more.end());
    return file;
  };
  write_images(set, {ppm(16385, 3), ppm(2, 70000)});
  for (const auto& [record, size] : {std::pair("0", "16385 x 3"), std::pair("1", "2 x 70000")}) {
    const std::string file = folder_ / "long.png";
    const Result result = millrace_command(
        {"view", set, "--record", record, "--samples", "2", "--size", "32", "--png", file});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr(std::string(size) + " pixels"));
    const Image sheet = read_png(contents_of(file));
    EXPECT_GE(std::max(sheet.width, sheet.height), 560) << "the image itself is drawn";
  }
}

TEST_F(View, NamesWhatIsWrong) {
  const Result bad = view({"--record", "1", "--png", folder_ / "a.png"});
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_THAT(bad.err, AllOf(HasSubstr(set_), HasSubstr("record 1 (dog/1.jpg): not a JPEG")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.png"));
  EXPECT_THAT(view({"--record", "7", "--png", "-"}).err, HasSubstr("has 2 records"));
  EXPECT_EQ(view({}).exit_code, 2) << "no record is named";
  EXPECT_THAT(view({"--record", "0", "--png", set_}).err, HasSubstr("the command reads it"));
}

TEST(Canvas, LeavesOutWhatDoesNotLieOnIt) {
  Canvas canvas({8, 6}, {9, 9, 9});
  canvas.place({{4, 4}, std::vector<std::uint8_t>(48, 50)}, -2, 4);
  canvas.fill({6, -3, 9, 5}, {1, 2, 3});
  canvas.write("text", 7, 5, {0, 0, 0});
  const auto pixel = [&](int x, int y) {
    const std::uint8_t* first = &canvas.image().rgb[static_cast<std::size_t>(y * 8 + x) * 3];
    return Colour{first[0], first[1], first[2]};
  };
  EXPECT_EQ(pixel(1, 4), (Colour{50, 50, 50}));
  EXPECT_EQ(pixel(2, 4), (Colour{9, 9, 9}));
  EXPECT_EQ(pixel(0, 3), (Colour{9, 9, 9}));
  EXPECT_EQ(pixel(7, 1), (Colour{1, 2, 3}));
  EXPECT_EQ(pixel(7, 2), (Colour{9, 9, 9}));
  canvas.place({{4, 4}, std::vector<std::uint8_t>(48, 50)}, 100, 100);
}

TEST(Canvas, WritesAsciiAndAQuestionMarkForTheRest) {
  const auto written = [](const std::string& text) {
    Canvas canvas({200, 30}, {255, 255, 255});
    canvas.write(text, 2, 2, {0, 0, 0});
    return canvas.image().rgb;
  };
  EXPECT_NE(written("a"), written("b"));
  EXPECT_NE(written("a"), written(""));
  EXPECT_EQ(written("\xc3\xa4\n"), written("???"));
  EXPECT_GT(Canvas::text_width("wide text"), Canvas::text_width("text"));
  EXPECT_NO_THROW(written(std::string(10'000, 'W')));
}

}  // namespace
}  // namespace millrace
