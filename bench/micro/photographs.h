// SPDX-License-Identifier: Apache-2.0
//
// Shared by the benchmarks of images: photographs, the crops of the train recipe, and
// libjpeg-turbo's time to decode the same photographs as a whole. All costs are given as shares of
// that time ("of_decode"). Times are the thread's processor time.
#pragma once

#include <benchmark/benchmark.h>
#include <millrace/geometry.h>
#include <millrace/image_decoder.h>
#include <millrace/random.h>
#include <turbojpeg.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace millrace::micro {

inline std::vector<std::string> read_photographs() {
  const std::filesystem::path folder = MILLRACE_SHARED_DIR "/data/photos";
  std::vector<std::filesystem::path> paths;
  std::vector<std::string> photographs;
  if (!std::filesystem::exists(folder)) return photographs;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".JPEG") paths.push_back(entry.path());
  std::ranges::sort(paths);
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    photographs.emplace_back(std::istreambuf_iterator<char>(file),
                             std::istreambuf_iterator<char>());
  }
  return photographs;
}

/// Empty without ../shared.
inline const std::vector<std::string>& photographs() {
  static const std::vector<std::string> all = read_photographs();
  return all;
}

/// The photographs as progressive JPEGs with the usual scans.
inline const std::vector<std::string>& progressive_photographs() {
  static const std::vector<std::string> all = [] {
    const std::unique_ptr<void, int (*)(void*)> handle(tjInitTransform(), tjDestroy);
    std::vector<std::string> made;
    for (const std::string& photograph : photographs()) {
      unsigned char* jpeg = nullptr;
      unsigned long size = 0;
      tjtransform progressive{};
      progressive.options = TJXOPT_PROGRESSIVE;
      if (tjTransform(handle.get(), reinterpret_cast<const unsigned char*>(photograph.data()),
                      photograph.size(), 1, &jpeg, &size, &progressive, 0) != 0)
        throw std::runtime_error("a photograph cannot be transcoded");
      made.emplace_back(reinterpret_cast<const char*>(jpeg), size);
      tjFree(jpeg);
    }
    return made;
  }();
  return all;
}

inline std::span<const std::byte> bytes_of(const std::string& photograph) {
  return std::as_bytes(std::span(photograph));
}

inline Size size_of(ImageDecoder& decoder, const std::string& photograph) {
  if (!decoder.open(bytes_of(photograph)).is_ok())
    throw std::runtime_error("a photograph cannot be decoded");
  return decoder.header().size();
}

inline PixelView decoded(ImageDecoder& decoder, const std::string& photograph,
                         const Region& region) {
  PixelView view;
  if (!decoder.open(bytes_of(photograph)).is_ok() || !decoder.decode(region, view).is_ok())
    throw std::runtime_error("a photograph cannot be decoded");
  return view;
}

/// A crop that the train recipe draws at a position: its box, and whether it is flipped.
struct DrawnCrop {
  Region box;
  bool mirrored;
};

inline DrawnCrop drawn_crop(Size image, std::uint64_t position) {
  Random random(5, position);
  const auto draw = [&] { return random.uniform(); };
  const Region box = random_resized_crop(image, {0.08, 1}, {3.0 / 4, 4.0 / 3}, draw);
  return {box, draw() < 0.5};
}

inline double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// libjpeg-turbo's decode of a whole photograph, by its own interface.
class WholeDecode {
 public:
  /// Returns the pixels, which are valid until the next call.
  PixelView run(const std::string& photograph, Size size) {
    pixels_.resize(std::max(pixels_.size(), static_cast<std::size_t>(size.width) * 3 *
                                                static_cast<std::size_t>(size.height)));
    const auto* jpeg = reinterpret_cast<const unsigned char*>(photograph.data());
    const double begin = thread_seconds();
    const int failed =
        tjDecompress2(handle_.get(), jpeg, photograph.size(), pixels_.data(), 0, 0, 0, TJPF_RGB, 0);
    seconds_ += thread_seconds() - begin;
    if (failed != 0) throw std::runtime_error("a photograph cannot be decoded");
    return {pixels_.data(), size.width, size.height, static_cast<std::size_t>(size.width) * 3};
  }
  /// Total time of all decodes.
  double seconds() const { return seconds_; }

 private:
  std::unique_ptr<void, int (*)(void*)> handle_{tjInitDecompress(), tjDestroy};
  std::vector<std::uint8_t> pixels_;
  double seconds_ = 0;
};

/// The part of a view inside a region.
inline PixelView part_of(const PixelView& view, const Region& region) {
  return {view.pixels + static_cast<std::size_t>(region.y) * view.stride +
              static_cast<std::size_t>(region.x) * 3,
          region.width, region.height, view.stride};
}

inline bool same_pixels(const PixelView& a, const PixelView& b) {
  if (a.width != b.width || a.height != b.height) return false;
  for (int row = 0; row < a.height; ++row) {
    const std::uint8_t* of_a = a.pixels + static_cast<std::size_t>(row) * a.stride;
    const std::uint8_t* of_b = b.pixels + static_cast<std::size_t>(row) * b.stride;
    if (!std::equal(of_a, of_a + static_cast<std::size_t>(a.width) * 3, of_b)) return false;
  }
  return true;
}

/// Times `run(photograph, its number, its size)` for one photograph after the other, and
/// libjpeg-turbo's decode of the whole photograph. `run` returns its time in seconds.
template <typename Run>
void beside_whole_decode(benchmark::State& state, const Run& run,
                         const std::vector<std::string>& jpegs = photographs()) {
  if (jpegs.empty()) {
    state.SkipWithError("needs " MILLRACE_SHARED_DIR "/data/photos");
    return;
  }
  const auto decoder = make_image_decoder();
  WholeDecode whole;
  double sum = 0;
  for (std::size_t n = 0; state.KeepRunning(); ++n) {
    const std::string& photograph = jpegs[n % jpegs.size()];
    const Size size = size_of(*decoder, photograph);
    benchmark::DoNotOptimize(whole.run(photograph, size).pixels);
    const double seconds = run(photograph, n, size);
    sum += seconds;
    state.SetIterationTime(seconds);
  }
  state.counters["of_decode"] = sum / whole.seconds();
}

}  // namespace millrace::micro
