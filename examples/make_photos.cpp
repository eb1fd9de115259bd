// SPDX-License-Identifier: Apache-2.0
//
// make_photos OUT_FOLDER [COUNT] [SEED]: writes COUNT (300) photograph-like JPEGs into class
// sub-folders of OUT_FOLDER, to try millrace without photographs. The same COUNT and SEED give the
// same pictures.

#include <millrace/random.h>
#include <turbojpeg.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using millrace::Random;
using Colour = std::array<float, 3>;

struct Picture {
  int width = 0;
  int height = 0;
  std::vector<Colour> pixels;

  Colour& at(int x, int y) {
    return pixels[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                  static_cast<std::size_t>(x)];
  }
};

/// Parameters of a class of pictures.
struct Scene {
  const char* name;
  int shapes;      ///< objects in the picture
  double boxes;    ///< share of boxes; the others are ellipses
  double relief;   ///< strength of large clouds and hills
  double texture;  ///< strength of fine detail
};

constexpr std::array<Scene, 4> scenes{{{"coast", 6, 0.1, 60, 1.0},
                                       {"forest", 40, 0.0, 45, 1.9},
                                       {"street", 60, 0.9, 20, 1.0},
                                       {"table", 14, 0.4, 30, 0.7}}};

float between(Random& random, double low, double high) {
  return static_cast<float>(random.uniform(low, high));
}

Colour random_colour(Random& random) {
  const float light = between(random, 40, 215);
  return {light + between(random, -40, 40), light + between(random, -30, 30),
          light + between(random, -45, 35)};
}

Colour mix(const Colour& a, const Colour& b, float share) {
  return {a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share, a[2] + (b[2] - a[2]) * share};
}

/// Adds smooth noise whose features are `cell` pixels wide: random values on a grid, interpolated
/// by smooth steps.
void add_noise(Picture& picture, Random& random, int cell, float strength,
               const std::vector<float>& mask) {
  const int columns = picture.width / cell + 2;
  std::vector<float> grid(static_cast<std::size_t>(columns) *
                          static_cast<std::size_t>(picture.height / cell + 2));
  for (float& value : grid)
    value = static_cast<float>(static_cast<double>(random()) * 0x1p-31 - 1.0) * strength;
  const Colour tint{between(random, 0.8, 1.1), 1.0F, between(random, 0.7, 1.1)};

  const auto smooth = [cell](int offset) {
    const float t = static_cast<float>(offset) / static_cast<float>(cell);
    return t * t * (3 - 2 * t);
  };
  std::vector<float> steps(static_cast<std::size_t>(cell));
  for (int i = 0; i < cell; ++i) steps[static_cast<std::size_t>(i)] = smooth(i);

  std::size_t pixel = 0;
  for (int y = 0; y < picture.height; ++y) {
    const float* above = grid.data() + static_cast<std::ptrdiff_t>(y / cell) * columns;
    const float* below = above + columns;
    const float down = steps[static_cast<std::size_t>(y % cell)];
    for (int x = 0; x < picture.width; ++x, ++pixel) {
      const int column = x / cell;
      const float right = steps[static_cast<std::size_t>(x % cell)];
      const float top = above[column] + (above[column + 1] - above[column]) * right;
      const float bottom = below[column] + (below[column + 1] - below[column]) * right;
      const float value = (top + (bottom - top) * down) * (mask.empty() ? 1.0F : mask[pixel]);
      for (std::size_t c = 0; c < 3; ++c) picture.pixels[pixel][c] += value * tint[c];
    }
  }
}

/// Paints light from top to bottom, with a horizon where the colours change.
void paint_ground(Picture& picture, Random& random) {
  const std::array<Colour, 4> colours{random_colour(random), random_colour(random),
                                      random_colour(random), random_colour(random)};
  const float horizon = between(random, 0.3, 0.75) * static_cast<float>(picture.height);
  const float slope = between(random, -0.15, 0.15);
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      const float line = horizon + slope * static_cast<float>(x);
      const float row = static_cast<float>(y);
      const bool sky = row < line;
      const float share =
          sky ? row / line : (row - line) / (static_cast<float>(picture.height) - line + 1);
      picture.at(x, y) =
          mix(colours[sky ? 0 : 2], colours[sky ? 1 : 3], std::clamp(share, 0.0F, 1.0F));
    }
  }
}

/// Paints a rotated box or ellipse with shading, an edge of one pixel and detail of its own, whose
/// strength is written to `mask`.
void paint_shape(Picture& picture, Random& random, bool box, std::vector<float>& mask) {
  const float extent = static_cast<float>(std::max(picture.width, picture.height));
  const float half_width = extent * between(random, 0.01, 0.16),
              half_height = extent * between(random, 0.01, 0.16);
  const float centre_x = between(random, 0, picture.width),
              centre_y = between(random, 0, picture.height);
  const float angle = box ? between(random, -0.1, 0.1) : between(random, 0, 3.14159);
  const float cosine = std::cos(angle), sine = std::sin(angle);
  const Colour lit = random_colour(random),
               shaded = mix(lit, {20, 20, 25}, between(random, 0.2, 0.8));
  const float detail = between(random, 0.1, 1.8);

  const int reach = static_cast<int>(half_width + half_height) + 2;
  const int left = std::max(0, static_cast<int>(centre_x) - reach),
            right = std::min(picture.width, static_cast<int>(centre_x) + reach);
  const int top = std::max(0, static_cast<int>(centre_y) - reach),
            bottom = std::min(picture.height, static_cast<int>(centre_y) + reach);
  for (int y = top; y < bottom; ++y) {
    for (int x = left; x < right; ++x) {
      const float dx = static_cast<float>(x) - centre_x, dy = static_cast<float>(y) - centre_y;
      const float u = (dx * cosine + dy * sine) / half_width,
                  v = (dy * cosine - dx * sine) / half_height;
      const float distance = box ? std::max(std::abs(u), std::abs(v)) : std::sqrt(u * u + v * v);
      const float cover =
          std::clamp((1 - distance) * std::min(half_width, half_height) + 0.5F, 0.0F, 1.0F);
      if (cover <= 0) continue;
      const float shade = std::clamp(0.5F + 0.35F * u + 0.35F * v, 0.0F, 1.0F);
      picture.at(x, y) = mix(picture.at(x, y), mix(lit, shaded, shade), cover);
      float& strength = mask[static_cast<std::size_t>(y) * static_cast<std::size_t>(picture.width) +
                             static_cast<std::size_t>(x)];
      strength += (detail - strength) * cover;
    }
  }
}

Picture paint(Random& random, const Scene& scene) {
  static constexpr std::array<double, 6> aspects{4.0 / 3, 3.0 / 2, 16.0 / 9, 1.0, 3.0 / 4, 2.0 / 3};
  Picture picture;
  picture.width = static_cast<int>(200 + random.below(801));
  const double height = picture.width / aspects[random.below(aspects.size())];
  picture.height = static_cast<int>(std::clamp(height, 150.0, 800.0));
  picture.pixels.resize(static_cast<std::size_t>(picture.width) *
                        static_cast<std::size_t>(picture.height));

  paint_ground(picture, random);
  for (const int cell : {160, 64})
    add_noise(picture, random, cell,
              static_cast<float>(scene.relief) * static_cast<float>(cell) / 160, {});
  std::vector<float> mask(picture.pixels.size(), between(random, 0.1, 0.8));
  for (int i = 0; i < scene.shapes; ++i)
    paint_shape(picture, random, random.uniform() < scene.boxes, mask);
  // Detail decreases with its fineness as in photographs: each octave has about half the strength
  // of the octave that is twice as coarse.
  for (const int cell : {32, 16, 8, 4, 2}) {
    add_noise(picture, random, cell, static_cast<float>(scene.texture * 5.0 * std::pow(cell, 0.75)),
              mask);
  }
  add_noise(picture, random, 1, between(random, 1, 5), {});  // the sensor's noise
  return picture;
}

/// Encoding of a picture; cameras and web sites use different ones.
struct Encoding {
  int quality;
  int subsampling;
  bool progressive;
};

Encoding random_encoding(Random& random) {
  static constexpr std::array<int, 20> subsamplings{
      TJSAMP_420, TJSAMP_420, TJSAMP_420, TJSAMP_420, TJSAMP_420, TJSAMP_420, TJSAMP_420,
      TJSAMP_420, TJSAMP_420, TJSAMP_420, TJSAMP_420, TJSAMP_420, TJSAMP_444, TJSAMP_444,
      TJSAMP_444, TJSAMP_444, TJSAMP_422, TJSAMP_422, TJSAMP_440, TJSAMP_GRAY};
  return {static_cast<int>(75 + random.below(21)), subsamplings[random.below(subsamplings.size())],
          random.uniform() < 0.15};
}

void write_jpeg(const Picture& picture, const Encoding& encoding,
                const std::filesystem::path& path) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(picture.pixels.size() * 3);
  for (const Colour& colour : picture.pixels) {
    for (const float value : colour)
      bytes.push_back(static_cast<std::uint8_t>(std::clamp(value, 0.0F, 255.0F)));
  }
  const std::unique_ptr<void, int (*)(tjhandle)> encoder(tjInitCompress(), tjDestroy);
  unsigned char* encoded = nullptr;
  unsigned long size = 0;
  const int result = tjCompress2(encoder.get(), bytes.data(), picture.width, 0, picture.height,
                                 TJPF_RGB, &encoded, &size, encoding.subsampling, encoding.quality,
                                 encoding.progressive ? TJFLAG_PROGRESSIVE : 0);
  const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owner(encoded, tjFree);
  if (result != 0)
    throw std::runtime_error("cannot encode " + path.string() + ": " +
                             tjGetErrorStr2(encoder.get()));
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(encoded), static_cast<std::streamsize>(size));
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

void make_photo(const std::filesystem::path& folder, std::uint64_t seed, std::uint64_t number) {
  Random random(seed, number);
  const Scene& scene = scenes[number % scenes.size()];
  const Picture picture = paint(random, scene);
  char name[32];
  std::snprintf(name, sizeof name, "%06llu.jpg", static_cast<unsigned long long>(number));
  write_jpeg(picture, random_encoding(random), folder / scene.name / name);
}

/// Makes all pictures on all cores; rethrows the first error.
void make_photos(const std::filesystem::path& folder, std::uint64_t count, std::uint64_t seed) {
  for (const Scene& scene : scenes) std::filesystem::create_directories(folder / scene.name);
  std::atomic<std::uint64_t> next{0};  // the next number; does not order memory
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      for (std::uint64_t number = next++; number < count; number = next++)
        make_photo(folder, seed, number);
    } catch (...) {
      const std::scoped_lock lock(mutex);
      if (!error) error = std::current_exception();
      next = count;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i)
      threads.emplace_back(work);
  }
  if (error) std::rethrow_exception(error);
}

bool parse(const char* text, std::uint64_t& number) {
  const char* end = text + std::strlen(text);
  return std::from_chars(text, end, number).ptr == end && end != text;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t count = 300, seed = 1;
  if (argc < 2 || argc > 4 || (argc > 2 && !parse(argv[2], count)) ||
      (argc > 3 && !parse(argv[3], seed))) {
    std::cerr << "usage: make_photos OUT_FOLDER [COUNT] [SEED]\n";
    return 2;
  }
  try {
    make_photos(argv[1], count, seed);
  } catch (const std::exception& error) {
    std::cerr << "make_photos: " << error.what() << '\n';
    return 1;
  }
  std::cout << "Made " << count << " pictures in " << argv[1] << '\n';
  return 0;
}
