// SPDX-License-Identifier: Apache-2.0
//
// What a training crop costs once it is decoded: resampled to 224 x 224, flipped or not, stored.
// "of_decode" is the share of the time in which libjpeg-turbo decodes the same photographs as a
// whole, in the same run; the bar is 0.08 with AVX2 and 0.04 with AVX-512. Both are the thread's
// processor time. Beside it the bilinear filter of OpenCV, which is not antialiased.
#include <benchmark/benchmark.h>
#include <millrace/detail/resample.h>
#include <millrace/image_decoder.h>
#include <millrace/random.h>
#include <turbojpeg.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <opencv2/imgproc.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace millrace {
namespace {

constexpr Size output{224, 224};
constexpr std::size_t output_stride = 3 * 224;
using Output = std::vector<std::uint8_t>;

std::vector<std::string> read_photographs() {
  const std::filesystem::path folder = MILLRACE_SHARED_DIR "/data/photos";
  std::vector<std::string> photographs;
  if (!std::filesystem::exists(folder)) return photographs;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".JPEG") {
      std::ifstream file(entry.path(), std::ios::binary);
      photographs.emplace_back(std::istreambuf_iterator<char>(file),
                               std::istreambuf_iterator<char>());
    }
  return photographs;
}

const std::vector<std::string>& photographs() {
  static const std::vector<std::string> all = read_photographs();
  return all;
}

/// A photograph's crop of the train recipe.
struct Crop {
  Region box;
  Resampling resampling;
};

Crop drawn_crop(Size image, std::uint64_t position) {
  Random random(5, position);
  const auto draw = [&] { return random.uniform(); };
  const Region box = random_resized_crop(image, {0.08, 1}, {3.0 / 4, 4.0 / 3}, draw);
  return {box,
          {.from = {box.width, box.height},
           .to = output,
           .window = {0, 0, output.width, output.height},
           .mirrored = draw() < 0.5}};
}

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::span<const std::byte> bytes_of(const std::string& photograph) {
  return std::as_bytes(std::span(photograph));
}

PixelView decoded(ImageDecoder& decoder, const std::string& photograph, const Region& region) {
  PixelView view;
  if (!decoder.open(bytes_of(photograph)).is_ok() || !decoder.decode(region, view).is_ok())
    throw std::runtime_error("a photograph cannot be decoded");
  return view;
}

Size size_of(ImageDecoder& decoder, const std::string& photograph) {
  if (!decoder.open(bytes_of(photograph)).is_ok())
    throw std::runtime_error("a photograph cannot be decoded");
  return decoder.header().size();
}

/// The region within the image that the resampler reads.
Region needed(Resampler& resampler, const Crop& crop) {
  Region region = resampler.prepare(crop.resampling);
  region.x += crop.box.x;
  region.y += crop.box.y;
  return region;
}

void resample_exactly(Resampler& resampler, const Crop& crop, const PixelView& view, Output& made) {
  resampler.prepare(crop.resampling);
  resampler.run(view, made.data(), output_stride);
}

void resample_by_opencv(Resampler&, const Crop&, const PixelView& view, Output& made) {
  const cv::Mat from(view.height, view.width, CV_8UC3, const_cast<std::uint8_t*>(view.pixels),
                     view.stride);
  cv::Mat to(output.height, output.width, CV_8UC3, made.data());
  cv::resize(from, to, to.size(), 0, 0, cv::INTER_LINEAR);
}

void verify() {
  const auto decoder = make_image_decoder();
  Resampler resampler;
  Output made(output_stride * 224);
  Output plain(made.size());
  for (std::size_t n = 0; n < photographs().size(); ++n) {
    const std::string& photograph = photographs()[n];
    const Crop crop = drawn_crop(size_of(*decoder, photograph), n);
    resample_exactly(resampler, crop, decoded(*decoder, photograph, needed(resampler, crop)), made);
    resample_plainly(crop.resampling, decoded(*decoder, photograph, crop.box), plain.data(),
                     output_stride);
    if (made != plain) throw std::runtime_error("the bits differ");
  }
}

template <typename Resample>
void resample_crops(benchmark::State& state, Resample resample) {
  if (photographs().empty()) {
    state.SkipWithError("needs " MILLRACE_SHARED_DIR "/data/photos");
    return;
  }
  static const bool verified = (verify(), true);
  benchmark::DoNotOptimize(verified);
  cv::setNumThreads(1);
  const std::unique_ptr<void, int (*)(void*)> reference(tjInitDecompress(), tjDestroy);
  const auto decoder = make_image_decoder();
  Resampler resampler;
  Output made(output_stride * 224);
  std::vector<std::uint8_t> whole;

  double decoding = 0;
  double resampling = 0;
  for (std::size_t n = 0; state.KeepRunning(); ++n) {
    const std::string& photograph = photographs()[n % photographs().size()];
    const Size size = size_of(*decoder, photograph);
    const Crop crop = drawn_crop(size, n);
    whole.resize(std::max(whole.size(), static_cast<std::size_t>(size.width) * 3 *
                                            static_cast<std::size_t>(size.height)));
    const auto* jpeg = reinterpret_cast<const unsigned char*>(photograph.data());
    const double begin = thread_seconds();
    tjDecompress2(reference.get(), jpeg, photograph.size(), whole.data(), 0, 0, 0, TJPF_RGB, 0);
    decoding += thread_seconds() - begin;

    const PixelView view = decoded(*decoder, photograph, needed(resampler, crop));
    const double middle = thread_seconds();
    resample(resampler, crop, view, made);
    const double one = thread_seconds() - middle;
    benchmark::DoNotOptimize(made.data());
    resampling += one;
    state.SetIterationTime(one);
  }
  state.counters["of_decode"] = resampling / decoding;
}
BENCHMARK_CAPTURE(resample_crops, as_pillow, resample_exactly)->UseManualTime()->Iterations(2000);
BENCHMARK_CAPTURE(resample_crops, opencv, resample_by_opencv)->UseManualTime()->Iterations(2000);

}  // namespace
}  // namespace millrace
