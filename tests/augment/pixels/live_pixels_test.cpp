// SPDX-License-Identifier: Apache-2.0
//
// The operations on pixels, compared with the torchvision and Pillow of this machine's Python.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>

#include "augment/resample/vector_targets.h"
#include "pixels/adjust.h"
#include "pixels/blur.h"
#include "pixels/levels.h"
#include "support/jpeg_samples.h"
#include "support/run_program.h"
#include "support/shared_data.h"

namespace millrace {
namespace {

using testing::Image;
using Numbers = std::array<double, 4>;

constexpr int pixel_cases = 300;

template <Property of>
void change(Image& image, const Numbers& values) {
  adjust(image.pixels, of, values[0]);
}

/// Changes brightness, contrast, saturation and a hue of 0.1, in the order of a permutation's
/// number.
void jitter(Image& image, const Numbers& values) {
  std::array<int, 4> order{0, 1, 2, 3};
  for (int n = 0; n < static_cast<int>(values[3]); ++n) std::ranges::next_permutation(order);
  std::vector<Adjustment> adjustments;
  for (const int number : order)
    adjustments.push_back({static_cast<Property>(number),
                           number == 3 ? 0.1 : values[static_cast<std::size_t>(number)]});
  adjust(image.pixels, adjustments);
}

/// Calls `run` with the image and exactly the memory that it needs.
template <typename Run>
void with_memory(Image& image, std::size_t bytes, const Run& run) {
  std::vector<std::uint8_t> memory(bytes);
  run(image.pixels.data(), Size{image.width, image.height}, std::span(memory));
}

void sharpen_image(Image& image, const Numbers& values) {
  with_memory(image, sharpness_memory({image.width, image.height}),
              [&](std::uint8_t* pixels, Size size, std::span<std::uint8_t> memory) {
                adjust_sharpness(pixels, size, values[0], memory);
              });
}

void blur_by_boxes(Image& image, const Numbers& values) {
  with_memory(image, extended_box_blur_memory({image.width, image.height}, values[0]),
              [&](std::uint8_t* pixels, Size size, std::span<std::uint8_t> memory) {
                extended_box_blur(pixels, size, values[0], memory);
              });
}

void blur(Image& image, const Numbers& values) {
  const Size kernel{static_cast<int>(values[0]), static_cast<int>(values[2])};
  with_memory(image, gaussian_blur_memory({image.width, image.height}, kernel),
              [&](std::uint8_t* pixels, Size size, std::span<std::uint8_t> memory) {
                gaussian_blur(pixels, size, kernel, values[1], memory);
              });
}

struct Change {
  const char* name;
  void (*run)(Image&, const Numbers&);
  /// Levels per million that may differ by 1.
  double millionths = 0;
};

// In the order of live_pixels.py's numbers.
constexpr Change changes_made[] = {
    {"brightness", change<Property::brightness>},
    {"contrast", change<Property::contrast>},
    {"saturation", change<Property::saturation>},
    {"hue", change<Property::hue>},
    {"sharpness", sharpen_image},
    {"jitter", jitter},
    {"grey", [](Image& image, const Numbers&) { make_grey(image.pixels); }},
    {"invert", [](Image& image, const Numbers&) { invert(image.pixels); }},
    {"solarize", [](Image& image, const Numbers& values) { solarize(image.pixels, values[0]); }},
    {"posterize",
     [](Image& image, const Numbers& values) {
       posterize(image.pixels, static_cast<int>(values[0]));
     }},
    {"autocontrast", [](Image& image, const Numbers&) { autocontrast(image.pixels); }},
    {"equalize", [](Image& image, const Numbers&) { equalize(image.pixels); }},
    {"box blur", blur_by_boxes},
    {"gaussian blur", blur, 20},
};

/// Returns the number of levels that differ; more than all levels if one differs by more than 1.
std::size_t differences(const Image& a, const Image& b) {
  std::size_t count = 0;
  for (std::size_t n = 0; n < a.pixels.size(); ++n) {
    const int difference = std::abs(a.pixels[n] - b.pixels[n]);
    if (difference > 1) return a.pixels.size() + 1;
    count += static_cast<std::size_t>(difference);
  }
  return count;
}

TEST(LivePixels, AreThoseOfTorchvision) {
  const testing::TemporaryFolder folder;
  const std::string path = (folder / "cases").string();
  const auto python = testing::run_program({"/usr/bin/python3", MILLRACE_LIVE_PIXELS, path,
                                            std::to_string(pixel_cases),
                                            (testing::shared_dir() / "data/photos").string()});
  if (python.exit_code == 77) GTEST_SKIP() << "needs python3-torchvision and python3-pil";
  ASSERT_EQ(python.exit_code, 0) << python.err;
  RecordProperty("python", python.out);

  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::size_t at = 0;
  const auto take = [&](void* to, std::size_t count) {
    ASSERT_LE(at + count, bytes.size());
    std::memcpy(to, &bytes[at], count);
    at += count;
  };
  for (std::size_t number = 0; number < std::size(changes_made); ++number) {
    const Change& operation = changes_made[number];
    std::size_t levels = 0;
    std::size_t other = 0;
    for (int n = 0; n < pixel_cases; ++n) {
      std::array<std::int32_t, 3> head{};
      Numbers values{};
      take(head.data(), sizeof head);
      take(values.data(), sizeof values);
      ASSERT_EQ(head[0], static_cast<std::int32_t>(number));
      Image image{head[1], head[2], 3, {}};
      image.pixels.resize(static_cast<std::size_t>(head[1] * head[2]) * 3);
      Image expected = image;
      take(image.pixels.data(), image.pixels.size());
      take(expected.pixels.data(), expected.pixels.size());
      for (const std::int64_t target : testing::vector_targets()) {
        const testing::OnTarget on(target);
        Image made = image;
        operation.run(made, values);
        const std::size_t count = differences(made, expected);
        ASSERT_LE(count, operation.millionths > 0 ? made.pixels.size() : 0)
            << operation.name << ", case " << n << ": " << image.width << " x " << image.height
            << ", " << ::testing::PrintToString(values) << ", " << testing::name_of(target);
        levels += made.pixels.size();
        other += count;
      }
    }
    EXPECT_LE(static_cast<double>(other), operation.millionths * 1e-6 * static_cast<double>(levels))
        << operation.name;
    RecordProperty(operation.name, std::to_string(other) + " of " + std::to_string(levels));
  }
  EXPECT_EQ(at, bytes.size());
}

}  // namespace
}  // namespace millrace
