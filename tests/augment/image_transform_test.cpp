// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <millrace/image_transform.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/jpeg_samples.h"
#include "support/sample_maker.h"
#include "support/shared_data.h"

namespace millrace {
namespace {

using testing::at;
using testing::bilinear;
using testing::Bytes;
using testing::cut;
using testing::encode;
using ::testing::HasSubstr;
using testing::Image;
using testing::Maker;
using testing::noise;
using testing::reference_decode;
using testing::window_of;

/// One axis of an antialiased bilinear resize in double precision: each pixel is the mean under a
/// triangle of the output's pixel pitch.
std::vector<double> triangle(const std::vector<double>& from, int length, int to_length, int lines,
                             std::size_t step, std::size_t line_step) {
  const double scale = static_cast<double>(length) / to_length;
  const double support = std::max(scale, 1.0);
  std::vector<double> to;
  for (int line = 0; line < lines; ++line) {
    for (int n = 0; n < to_length; ++n) {
      const double centre = (n + 0.5) * scale;
      double sum[3] = {0, 0, 0};
      double weights = 0;
      const int last = std::min(length - 1, static_cast<int>(centre + support));
      for (int tap = std::max(0, static_cast<int>(centre - support) - 1); tap <= last; ++tap) {
        const double weight = 1 - std::abs(tap + 0.5 - centre) / support;
        if (weight <= 0) continue;
        weights += weight;
        const double* pixel = &from[static_cast<std::size_t>(tap) * step +
                                    static_cast<std::size_t>(line) * line_step];
        for (int channel = 0; channel < 3; ++channel) sum[channel] += weight * pixel[channel];
      }
      for (const double channel : sum) to.push_back(channel / weights);
    }
  }
  return to;
}

std::vector<double> antialiased(const Image& image, Size size) {
  const std::vector<double> pixels(image.pixels.begin(), image.pixels.end());
  const auto stride = static_cast<std::size_t>(image.width) * 3;
  const std::vector<double> wide =
      triangle(pixels, image.width, size.width, image.height, 3, stride);
  const auto line = static_cast<std::size_t>(size.width) * 3;
  const std::vector<double> columns =
      triangle(wide, image.height, size.height, size.width, line, 3);  // transposed
  std::vector<double> made(columns.size());
  for (std::size_t x = 0; x < static_cast<std::size_t>(size.width); ++x)
    for (std::size_t y = 0; y < static_cast<std::size_t>(size.height); ++y)
      for (std::size_t channel = 0; channel < 3; ++channel)
        made[y * line + x * 3 + channel] =
            columns[(x * static_cast<std::size_t>(size.height) + y) * 3 + channel];
  return made;
}

double mean_difference(const Image& image, const std::vector<double>& reference) {
  EXPECT_EQ(image.pixels.size(), reference.size());
  double sum = 0;
  for (std::size_t n = 0; n < reference.size(); ++n)
    sum += std::abs(image.pixels[n] - reference[n]);
  return sum / static_cast<double>(reference.size());
}

TEST(ImageTransform, SaysWhatItMakes) {
  const auto transform =
      image_transform({{200, 100}, {RandomResizedCrop{}, RandomHorizontalFlip{}}});
  ASSERT_EQ(transform->spec().fields().size(), 2U);
  EXPECT_EQ(transform->spec().fields()[0].name, "image");
  EXPECT_EQ(transform->spec().fields()[0].dtype, DType::uint8);
  EXPECT_EQ(transform->spec().fields()[0].shape, (Shape{100, 200, 3}));
  EXPECT_EQ(transform->spec().fields()[1].name, "label");
  EXPECT_EQ(transform->spec().fields()[1].dtype, DType::int64);
  EXPECT_EQ(transform->spec().fields()[1].shape, Shape{});
  EXPECT_EQ(transform->stages(), (std::vector<std::string>{"decode", "augment"}));
  const auto limited = image_transform(Recipe::train(32), {.max_decode_bytes = 1000});
  EXPECT_EQ(limited->scratch_limit(3), 1000 + 3 * 2 * DecodeBudget::small_bytes);
  Recipe recipe = Recipe::train(32);
  recipe.like = Like::pillow_12;
  EXPECT_EQ(image_transform(recipe)->description(), recipe.to_json());
  EXPECT_THAT(image_transform(recipe)->description(), ::testing::HasSubstr("pillow-12"));
  EXPECT_THROW(image_transform({{0, 100}, {RandomResizedCrop{}}}), Error);
}

TEST(ImageTransform, CopiesTheLabelAndTimesItsStages) {
  Maker maker(Recipe::train(32));
  Random random(1, 1);
  ASSERT_TRUE(maker.make(encode(noise(60, 50, 1), {}), -12345678901, random).is_ok());
  EXPECT_EQ(maker.label(), -12345678901);
  EXPECT_GT(maker.stage_ns()[0], 0U);
  EXPECT_GT(maker.stage_ns()[1], 0U);
}

TEST(ImageTransform, WithoutResizingIsTheDecodedWindow) {
  const Bytes encoded = encode(noise(64, 64, 2), {});
  const Image whole = reference_decode(encoded);
  Random random(1, 1);
  Maker same(window_of({64, 64}, 64));
  ASSERT_TRUE(same.make(encoded, 0, random).is_ok());
  EXPECT_EQ(same.image().pixels, whole.pixels);
  Maker window(window_of({31, 22}, 64));
  ASSERT_TRUE(window.make(encoded, 0, random).is_ok());
  EXPECT_EQ(window.image().pixels, cut(whole, {16, 21, 31, 22}).pixels);  // 16.5, 21
  Maker padded(window_of({97, 70}, 64));
  ASSERT_TRUE(padded.make(encoded, 0, random).is_ok());
  EXPECT_EQ(padded.image().pixels, cut(whole, {-16, -3, 97, 70}).pixels);
}

TEST(ImageTransform, WindowEqualsTheWholeResizedAndCut) {
  Maker makers[] = {Maker(window_of({224, 224}, 256)), Maker(window_of({50, 130}, 140)),
                    Maker(window_of({33, 20}, 37))};
  const int resizes[] = {256, 140, 37};
  constexpr Size sizes[] = {{300, 200}, {201, 331}, {257, 256}, {140, 139}, {61, 444},
                            {1, 40},    {40, 1},    {500, 375}, {35, 36}};
  Random random(1, 1);
  for (const Size& size : sizes) {
    const Bytes encoded = encode(noise(size.width, size.height, 4), {});
    const Image whole = reference_decode(encoded);
    for (std::size_t n = 0; n < 3; ++n) {
      SCOPED_TRACE(std::to_string(size.width) + " x " + std::to_string(size.height) + " to " +
                   std::to_string(resizes[n]));
      ASSERT_TRUE(makers[n].make(encoded, 0, random).is_ok());
      const Image made = makers[n].image();
      const Size resized = resize_shorter(size, resizes[n]);
      ASSERT_EQ(
          made.pixels,
          cut(bilinear(whole, resized), center_crop(resized, {made.width, made.height})).pixels);
    }
  }
}

TEST(ImageTransform, WindowsOfPhotographsEqualTheWholeResizedAndCut) {
  MILLRACE_NEEDS_SHARED("data/photos");
  Maker window(Recipe::eval());
  Random random(1, 1);
  const auto files = testing::jpeg_files(testing::shared_dir() / "data/photos");
  for (std::size_t n = 0; n < files.size(); n += 10) {
    SCOPED_TRACE(files[n].string());
    const Bytes encoded = testing::read_file(files[n]);
    const Image whole = reference_decode(encoded);
    const Size resized = resize_shorter({whole.width, whole.height}, 256);
    Maker all(window_of(resized, 256));
    ASSERT_TRUE(window.make(encoded, 0, random).is_ok());
    ASSERT_TRUE(all.make(encoded, 0, random).is_ok());
    ASSERT_EQ(window.image().pixels, cut(all.image(), center_crop(resized, {224, 224})).pixels);
  }
}

TEST(ImageTransform, WhatShrinksStaysInPlace) {
  // A ramp shows any shift, and a last row or column that is not made.
  Image ramp{203, 187, 3, {}};
  for (int y = 0; y < ramp.height; ++y)
    for (int x = 0; x < ramp.width; ++x)
      for (const int value : {x, y, (x + y + 1) / 2})
        ramp.pixels.push_back(static_cast<std::uint8_t>(value));
  const Bytes encoded =
      encode(ramp, {.h = {1, 1, 1, 1}, .v = {1, 1, 1, 1}, .quality = 100, .stored_as_rgb = true});
  const Image whole = reference_decode(encoded);
  const double ratio = static_cast<double>(whole.width) / whole.height;
  for (int side = 4; side < 130; ++side) {
    const Size output{side, side * 9 / 10};
    Maker maker({output, {RandomResizedCrop{{1, 1}, {ratio, ratio}}}});
    Random random(1, 1);
    ASSERT_TRUE(maker.make(encoded, 0, random).is_ok());
    const Image made = maker.image();
    for (int y = 0; y < output.height; ++y) {
      for (int x = 0; x < output.width; ++x) {
        const double pitch = static_cast<double>(whole.height) / output.height;
        const double from_x = (x + 0.5) * whole.width / output.width - 0.5;
        const double from_y = (y + 0.5) * pitch - 0.5;
        // The filter ends at the image's edge, so the pixels there are means of pixels further
        // inside. They differ by less than one pixel of the output.
        const bool edge = x == 0 || y == 0 || x + 1 == output.width || y + 1 == output.height;
        const double tolerance = edge ? 2 + (pitch - 1) : 2;
        const std::uint8_t* pixel = &made.pixels[at(made, x, y)];
        ASSERT_NEAR(pixel[0], from_x, tolerance)
            << output.width << " x " << output.height << " at " << x << ", " << y;
        ASSERT_NEAR(pixel[1], from_y, tolerance)
            << output.width << " x " << output.height << " at " << x << ", " << y;
        ASSERT_NEAR(pixel[2], (from_x + from_y) / 2, tolerance)
            << output.width << " x " << output.height << " at " << x << ", " << y;
      }
    }
  }
}

TEST(ImageTransform, IsAnAntialiasedResizeOfPhotographs) {
  MILLRACE_NEEDS_SHARED("golden/pillow.json");
  std::ifstream file(testing::shared_dir() / "golden/pillow.json");
  const auto golden = nlohmann::json::parse(file);
  double sum = 0;
  double worst = 0;
  int compared = 0;
  for (std::size_t n = 0; n < golden.at("entries").size(); n += 8) {
    const auto& entry = golden.at("entries")[n];
    ASSERT_EQ(entry.at("filter"), "bilinear");
    const Bytes encoded = testing::read_file(testing::shared_dir() / "data/photos" /
                                             entry.at("file").get<std::string>());
    const Image whole = reference_decode(encoded);
    const auto& box = entry.at("box");  // left, top, right, bottom
    const int left = box[0], top = box[1], right = box[2], bottom = box[3];
    const Image crop = cut(whole, {left, top, right - left, bottom - top});
    // The box alone, as an image of its own, encoded without loss.
    Maker maker({{224, 224},
                 {RandomResizedCrop{{1, 1},
                                    {static_cast<double>(crop.width) / crop.height,
                                     static_cast<double>(crop.width) / crop.height}}}});
    const Bytes again = encode(crop, {.h = {1, 1, 1, 1}, .v = {1, 1, 1, 1}, .quality = 100});
    Random random(1, 1);
    ASSERT_TRUE(maker.make(again, 0, random).is_ok());
    const double difference =
        mean_difference(maker.image(), antialiased(reference_decode(again), {224, 224}));
    worst = std::max(worst, difference);
    sum += difference;
    ++compared;
  }
  ASSERT_GT(compared, 40);
  RecordProperty("mean_absolute_difference", std::to_string(sum / compared));
  RecordProperty("worst", std::to_string(worst));
  // Two rounding passes give a little more than 0.25.
  EXPECT_LT(sum / compared, 0.35);
  EXPECT_LT(worst, 0.4);
}

TEST(ImageTransform, BadImagesAreBadWithTheReason) {
  Maker maker(Recipe::train(32));
  Random random(1, 1);
  EXPECT_EQ(maker.make(Bytes{}, 0, random).reason(), "empty (0 bytes)");
  Bytes cut_short = encode(noise(60, 50, 1), {.quality = 100});
  cut_short.resize(cut_short.size() / 8);
  Maker whole(window_of({32, 32}, 32));
  EXPECT_THAT(whole.make(cut_short, 0, random).reason(), HasSubstr("remature end"));
  Maker narrow(window_of({32, 32}, 10000));
  EXPECT_EQ(narrow.make(encode(noise(2, 40, 1), {}), 0, random).reason(),
            "resized to 10000 x 200000 pixels; at most 100 megapixels are made");
  const std::string line = "P5\n1 8400000\n255\n" + std::string(8400, 'x');
  const auto pnm = std::as_bytes(std::span(line));
  Maker evaluation(window_of({32, 32}, 256));
  EXPECT_EQ(evaluation.make(Bytes(pnm.begin(), pnm.end()), 0, random).reason(),
            "resized to 256 x 1000000000 pixels; at most 100 megapixels are made");
}

TEST(ImageTransform, MissingFieldsThrow) {
  Maker maker(Recipe::train(32));
  Random random(1, 1);
  const Bytes encoded = encode(noise(8, 8, 1), {});
  const std::int64_t label = 3;
  const std::array no_label{RecordField{"image", encoded}, RecordField{"path", encoded}};
  const std::array no_image{RecordField{"picture", encoded},
                            RecordField{"label", std::as_bytes(std::span(&label, 1))}};
  try {
    (void)maker.make(Record(7, no_label), random);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_THAT(error.what(), HasSubstr("\"label\""));
    EXPECT_THAT(error.what(), HasSubstr("image, path"));
  }
  EXPECT_THROW((void)maker.make(Record(7, no_image), random), Error);
}

TEST(ImageTransform, HasTheFingerprintOfItsRecipe) {
  EXPECT_EQ(image_transform(Recipe::train(32))->fingerprint(),
            image_transform(Recipe::train(32))->fingerprint());
  EXPECT_NE(image_transform(Recipe::train(32))->fingerprint(),
            image_transform(Recipe::train(33))->fingerprint());
  EXPECT_NE(image_transform(Recipe::train(32))->fingerprint(),
            image_transform(Recipe::eval(32))->fingerprint());
  Recipe unflipped = Recipe::train(32);
  unflipped.ops.back() = RandomHorizontalFlip{0};
  EXPECT_NE(image_transform(Recipe::train(32))->fingerprint(),
            image_transform(unflipped)->fingerprint());
  EXPECT_EQ(image_transform(unflipped)->name_in_messages(), "recipe");
}

}  // namespace
}  // namespace millrace
