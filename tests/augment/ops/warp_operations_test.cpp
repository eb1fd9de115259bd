// SPDX-License-Identifier: Apache-2.0
//
// The random numbers and the JSON of the operations that warp and erase. pixels/warp_test.cpp
// compares the pixels.
#include <gtest/gtest.h>
#include <millrace/image_transform.h>
#include <millrace/warp_operations.h>

#include <cmath>
#include <functional>
#include <map>
#include <numbers>
#include <vector>

#include "ops/program.h"
#include "pixels/warp.h"
#include "support/recipe_text.h"

namespace millrace {
namespace {

using testing::operations_of;
using testing::why_no_list;

using WarpPixels = std::vector<std::uint8_t>;

/// Returns a black image with a white square of 3 x 3 pixels around a place.
WarpPixels dot_on_black(Size size, int x, int y) {
  WarpPixels pixels(3 * static_cast<std::size_t>(size.width) *
                    static_cast<std::size_t>(size.height));
  for (int row = y - 1; row <= y + 1; ++row)
    std::fill_n(&pixels[3 * static_cast<std::size_t>(row * size.width + x - 1)], 9,
                std::uint8_t{255});
  return pixels;
}

/// Returns the centre of the white pixels, relative to the image's centre.
Point dot_of(const WarpPixels& pixels, Size size) {
  Point sum;
  int count = 0;
  for (int y = 0; y < size.height; ++y)
    for (int x = 0; x < size.width; ++x)
      if (pixels[3 * static_cast<std::size_t>(y * size.width + x)] == 255) {
        sum.x += x + 0.5;
        sum.y += y + 0.5;
        ++count;
      }
  return {sum.x / count - size.width * 0.5, sum.y / count - size.height * 0.5};
}

WarpPixels run_on(WarpPixels pixels, Size size, const Operation& op, Random& random) {
  const SampleSpec spec({{"image", DType::uint8, {3}}});
  const std::vector places{Tensor{pixels.data(), DType::uint8, {3}}};
  std::array<std::uint64_t, 2> stages{};
  Sample sample(spec, places, stages);
  Scratch scratch;
  SampleImage image{pixels.data(), size, sample, scratch};
  dynamic_cast<const PixelOperation&>(op.implementation()).run(image, random);
  return pixels;
}

double degrees_of(Point place) { return std::atan2(place.y, place.x) * 180 / std::numbers::pi; }

/// Expects that the counts come from classes of these shares: the sum of squares must be at most
/// four and a half deviations above its mean.
void expect_law(const std::map<int, int>& drawn, const std::map<int, double>& shares) {
  int total = 0;
  for (const auto& [one, count] : drawn) {
    total += count;
    EXPECT_TRUE(shares.contains(one)) << one << " was drawn " << count << " times";
  }
  double squares = 0;
  for (const auto& [one, share] : shares) {
    const double expected = share * total;
    const auto found = drawn.find(one);
    const double off = (found == drawn.end() ? 0 : found->second) - expected;
    squares += off * off / expected;
  }
  const double freedom = static_cast<double>(shares.size()) - 1;
  EXPECT_LT(squares, freedom + 4.5 * std::sqrt(2 * freedom));
}

std::map<int, double> equal_shares(int low, int high) {
  std::map<int, double> shares;
  for (int one = low; one <= high; ++one) shares[one] = 1.0 / (high - low + 1);
  return shares;
}

/// Draws 3,000 times, and counts the results of `measure` on the image made.
std::map<int, int> drawn_by(const Operation& op, const WarpPixels& pixels, Size size,
                            const std::function<int(const WarpPixels&)>& measure) {
  std::map<int, int> drawn;
  for (std::uint64_t position = 0; position < 3000; ++position) {
    Random random(20261123, position);
    ++drawn[measure(run_on(pixels, size, op, random))];
  }
  return drawn;
}

TEST(WarpOperations, TurnScaleAndShearByWhatTheirRangesSay) {
  const Size size{91, 91};
  const auto angle_class = [&](const WarpPixels& made) {
    return static_cast<int>((degrees_of(dot_of(made, size)) + 180) / 360 * 12) % 12;
  };
  const WarpPixels right = dot_on_black(size, 75, 45);
  expect_law(drawn_by(RandomAffine{.degrees = {-180, 180}}, right, size, angle_class),
             equal_shares(0, 11));
  expect_law(drawn_by(RandomRotation{.degrees = {-180, 180}}, right, size, angle_class),
             equal_shares(0, 11));
  const Size large{201, 201};
  const auto scale_class = [&](const WarpPixels& made) {
    return std::clamp(static_cast<int>((dot_of(made, large).x / 90 - 0.5) * 10), 0, 4);
  };
  expect_law(
      drawn_by(RandomAffine{.scale = {0.5, 1}}, dot_on_black(large, 190, 100), large, scale_class),
      equal_shares(0, 4));
  const WarpPixels below = dot_on_black(size, 45, 75);
  const auto shear_class = [&](const WarpPixels& made) {
    const Point dot = dot_of(made, size);
    return std::clamp(static_cast<int>((degrees_of({dot.y, dot.x}) + 40) / 10), 0, 7);
  };
  expect_law(drawn_by(RandomAffine{.shear_x = {-40, 40}}, below, size, shear_class),
             equal_shares(0, 7));

  Random random(1, 1);
  EXPECT_NEAR(
      degrees_of(dot_of(run_on(right, size, RandomAffine{.degrees = {30, 30}}, random), size)), 30,
      1)
      << "clockwise";
  EXPECT_NEAR(
      degrees_of(dot_of(run_on(right, size, RandomRotation{.degrees = {30, 30}}, random), size)),
      -30, 1)
      << "counter-clockwise";
  const RandomAffine across{.shear_x = {20, 20}};
  EXPECT_LT(dot_of(run_on(below, size, across, random), size).x, -9);
  const RandomAffine down{.shear_x = {}, .shear_y = {20, 20}};
  EXPECT_LT(dot_of(run_on(right, size, down, random), size).y, -9);
}

TEST(WarpOperations, MoveByWholePixels) {
  const Size size{41, 35};
  const WarpPixels middle = dot_on_black(size, 20, 17);
  const RandomAffine move{.translate = {0.25, 0.4}};  // up to 10.25 and 14 pixels
  std::map<int, double> across = equal_shares(-9, 9);
  for (auto& [one, share] : across) share = 1 / 20.5;
  across[-10] = across[10] = 0.75 / 20.5;
  expect_law(drawn_by(move, middle, size,
                      [&](const WarpPixels& made) {
                        return static_cast<int>(std::lround(dot_of(made, size).x));
                      }),
             across);
  std::map<int, double> down = equal_shares(-13, 13);
  for (auto& [one, share] : down) share = 1 / 28.0;
  down[-14] = down[14] = 0.5 / 28;
  expect_law(drawn_by(move, middle, size,
                      [&](const WarpPixels& made) {
                        return static_cast<int>(std::lround(dot_of(made, size).y));
                      }),
             down);
}

/// Returns the box around the pixels that are not black.
Region covered_box(const WarpPixels& pixels, Size size) {
  int left = size.width, top = size.height, right = 0, bottom = 0;
  for (int y = 0; y < size.height; ++y)
    for (int x = 0; x < size.width; ++x)
      if (pixels[3 * static_cast<std::size_t>(y * size.width + x)] != 0) {
        left = std::min(left, x);
        right = std::max(right, x + 1);
        top = std::min(top, y);
        bottom = std::max(bottom, y + 1);
      }
  return {left, top, right - left, bottom - top};
}

TEST(WarpOperations, EraseBoxesOfTorchvisionsLaw) {
  const Size size{40, 30};
  const WarpPixels black(3 * 40 * 30);
  const RandomErasing square{.p = 1, .scale = {0.25, 0.25}, .ratio = {1, 1}, .value = {7, 0, 0}};
  const auto drawn = [&](const RandomErasing& erasing, auto member) {
    return drawn_by(erasing, black, size, [&](const WarpPixels& made) {
      return std::invoke(member, covered_box(made, size));
    });
  };
  expect_law(drawn(square, &Region::x), equal_shares(0, 23));  // 17 of 40 are covered
  expect_law(drawn(square, &Region::y), equal_shares(0, 13));

  RandomErasing any_area = square;
  any_area.scale = {0.1, 0.4};
  std::map<int, double> sides;
  const auto share_below = [](double side) {
    return std::clamp((side * side / 1200 - 0.1) / 0.3, 0.0, 1.0);
  };
  for (int side = 11; side <= 22; ++side)
    sides[side] = share_below(side + 0.5) - share_below(side - 0.5);
  expect_law(drawn(any_area, &Region::height), sides);

  RandomErasing any_ratio = square;
  any_ratio.scale = {0.1, 0.1};
  any_ratio.ratio = {0.5, 2};
  std::map<int, double> heights;
  const auto log_below = [](double side) {
    return std::clamp(std::log2(side * side / 120) / 2 + 0.5, 0.0, 1.0);
  };
  for (int side = 8; side <= 15; ++side)
    heights[side] = log_below(side + 0.5) - log_below(side - 0.5);
  expect_law(drawn(any_ratio, &Region::height), heights);

  RandomErasing sometimes = square;
  sometimes.p = 0.25;
  const auto covers = [&](const WarpPixels& made) { return made == black ? 0 : 1; };
  expect_law(drawn_by(sometimes, black, size, covers), {{0, 0.75}, {1, 0.25}});
  RandomErasing impossible = square;
  impossible.scale = {1, 1};
  EXPECT_EQ(drawn_by(impossible, black, size, covers), (std::map<int, int>{{0, 3000}}));
}

TEST(WarpOperations, MovesTheCornersInwards) {
  const Size size{41, 30};
  const WarpPixels dot = dot_on_black(size, 9, 9);
  const RandomPerspective perspective{.distortion_scale = 0.5, .p = 0.75, .fill = {1, 2, 3}};
  std::map<int, int> left_alone;
  std::map<int, int> lefts;
  for (std::uint64_t position = 0; position < 3000; ++position) {
    Random random(3, position);
    Random same(3, position);
    const WarpPixels made = run_on(dot, size, perspective, random);
    ++left_alone[made == dot ? 1 : 0];
    if (same.uniform() >= 0.75) {
      EXPECT_EQ(made, dot);
      continue;
    }
    double inwards[8];
    for (int n = 0; n < 8; ++n) inwards[n] = static_cast<double>(same.below(n % 2 == 0 ? 11 : 8));
    ++lefts[static_cast<int>(inwards[0])];
    const auto map = perspective_map(size, {Point{inwards[0], inwards[1]},
                                            {40 - inwards[2], inwards[3]},
                                            {40 - inwards[4], 29 - inwards[5]},
                                            {inwards[6], 29 - inwards[7]}});
    WarpPixels expected(dot.size());
    warp(dot.data(), size, map.value(), Interpolation::bilinear, {1, 2, 3}, expected.data());
    ASSERT_EQ(made, expected);
    EXPECT_EQ(random(), same());
  }
  expect_law(left_alone, {{0, 0.75}, {1, 0.25}});
  expect_law(lefts, equal_shares(0, 10));

  Random random(1, 1);
  const RandomPerspective always{.p = 1};
  EXPECT_EQ(run_on({9, 9, 9}, {1, 1}, always, random), (WarpPixels{9, 9, 9})) << "has no map";
}

TEST(WarpOperations, RandomCropPlacesItsWindowAnywhere) {
  const std::vector<Operation> crop{RandomCrop{.padding = {1, 2, 3, 0}}};
  const Program program({20, 10}, crop);
  std::map<int, int> lefts;
  std::map<int, int> tops;
  for (std::uint64_t position = 0; position < 3000; ++position) {
    Random random(5, position);
    const ResamplePlan plan = program.plan({24, 14}, 1, random);
    ++lefts[plan.padding_map.columns[10]];
    ++tops[plan.padding_map.rows[5]];
  }
  expect_law(lefts, equal_shares(9, 17));  // of 28 columns 20 are shown, from -1 on
  expect_law(tops, equal_shares(3, 9));
}

TEST(WarpOperations, ComeThroughJson) {
  for (const auto& [op, json] : std::initializer_list<std::pair<Operation, std::string>>{
           {RandomAffine{}, R"({"op":"random_affine","degrees":[0.0,0.0],"translate":[0.0,0.0],)"
                            R"("scale":[1.0,1.0],"shear":[0.0,0.0],"fill":[0,0,0]})"},
           {RandomAffine{.degrees = {-30, -10},
           .translate = {0.25, 0.5},
           .scale = {0.5, 2},
           .shear_x = {-5, 5},
           .shear_y = {1, 2},
           .interpolation = Interpolation::bicubic,
           .fill = {1, 2, 3}},
            R"({"op":"random_affine","degrees":[-30.0,-10.0],"translate":[0.25,0.5],)"
            R"("scale":[0.5,2.0],"shear":[-5.0,5.0,1.0,2.0],"interpolation":"bicubic",)"
            R"("fill":[1,2,3]})"},
           {RandomRotation{.degrees = {-15, 15}, .interpolation = Interpolation::bilinear},
            R"({"op":"random_rotation","degrees":[-15.0,15.0],"interpolation":"bilinear",)"
            R"("fill":[0,0,0]})"},
           {RandomPerspective{},
            R"({"op":"random_perspective","distortion_scale":0.5,"p":0.5,"fill":[0,0,0]})"},
           {RandomPerspective{.interpolation = Interpolation::nearest},
            R"({"op":"random_perspective","distortion_scale":0.5,"p":0.5,)"
            R"("interpolation":"nearest","fill":[0,0,0]})"},
           {RandomErasing{},
            R"({"op":"random_erasing","p":0.5,"scale":[0.02,0.33],"ratio":[0.3,3.3],)"
            R"("value":[0,0,0]})"}}) {
    EXPECT_EQ(op.to_json(), json);
    EXPECT_EQ(operations_of(R"([{"op": "center_crop"}, )" + json + "]").back(), op);
  }
  const auto read = [](const std::string& op) {
    return operations_of(R"([{"op": "center_crop"}, )" + op + "]").back();
  };
  EXPECT_EQ(read(R"({"op": "random_rotation", "degrees": 15})"),
            Operation(RandomRotation{.degrees = {-15, 15}}));
  EXPECT_EQ(read(R"({"op": "random_affine", "shear": 10})"),
            Operation(RandomAffine{.shear_x = {-10, 10}}));
}

TEST(WarpOperations, NameWhatIsWrong) {
  for (const auto& [op, parameters, why] : std::initializer_list<std::array<std::string, 3>>{
           {"random_affine", R"("degrees": [10, -10])",
            R"("degrees" is [10.0, -10.0], the first must not be above the second)"},
           {"random_affine", R"("degrees": 400)",
            R"("degrees" is [-400.0, 400.0], both must lie in -360.0..360.0)"},
           {"random_affine", R"("degrees": "far")",
            R"("degrees" is "far", must be a number, or two, [low, high])"},
           {"random_affine", R"("translate": 0.5)",
            R"("translate" is 0.5, must be two numbers, [across, down])"},
           {"random_affine", R"("translate": [0.5, 2])",
            R"("translate" is [0.5,2], must be in 0.0..1.0)"},
           {"random_affine", R"("scale": [0, 1])",
            R"("scale" is [0.0, 1.0], both must lie in 0.001..1000.0)"},
           {"random_affine", R"("shear": [1, 2, 3])",
            R"("shear" is [1,2,3], must be one number, or two or four, [low, high, low, high])"},
           {"random_affine", R"("shear": [1, 2, 4, 3])",
            R"("shear" is [1,2,4,3], must be ranges, [low, high])"},
           {"random_rotation", R"("interpolation": "lanczos")",
            R"("interpolation" is "lanczos", must be "nearest" or "bilinear" or "bicubic")"},
           {"random_rotation", R"("expand": true)", R"("expand" is true, must be false)"},
           {"random_perspective", R"("distortion_scale": 1.5)",
            R"("distortion_scale" is 1.5, must lie in 0.0..1.0)"},
           {"random_erasing", R"("value": "random")",
            R"("value" is "random", must be an integer, or three, [red, green, blue])"}}) {
    const std::string list = R"([{"op": "center_crop"}, {"op": ")" + op + R"(", )" + parameters;
    EXPECT_EQ(why_no_list(list + "}]"), "train.json: ops[1] (" + op + "): " + why);
  }
  EXPECT_EQ(why_no_list(R"([{"op": "random_rotation"}, {"op": "center_crop"}])"),
            "train.json: ops[0] (random_rotation) comes before the image has the output's size; "
            "begin with random_resized_crop, or with resize and center_crop");
  EXPECT_EQ(why_no_list(R"([{"op": "center_crop"}, {"op": "random_erasing"}, )"
                        R"({"op": "random_vertical_flip"}])"),
            "train.json: ops[2] (random_vertical_flip) comes after ops[1] (random_erasing), which "
            "runs on pixels; flips must come before");
  const RandomRotation lanczos{.interpolation = Interpolation::lanczos};
  EXPECT_THROW(image_transform({{8, 8}, {CenterCrop{}, lanczos}}), Error);
  const RandomAffine no_number{.shear_x = {std::nan(""), 0}};
  EXPECT_THROW(image_transform({{8, 8}, {CenterCrop{}, no_number}}), Error);
}

}  // namespace
}  // namespace millrace
