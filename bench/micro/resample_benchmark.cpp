// SPDX-License-Identifier: Apache-2.0
//
// Cost of a training crop after decoding: it is resampled to 224 x 224, flipped or not, and stored.
// The target is an "of_decode" of 0.08 with AVX2 and 0.04 with AVX-512. OpenCV's bilinear filter,
// which is not antialiased, is timed for comparison.
#include <millrace/detail/resample.h>

#include <opencv2/imgproc.hpp>

#include "micro/photographs.h"

namespace millrace {
namespace {

constexpr Size output{224, 224};
constexpr std::size_t output_stride = 3 * 224;
using Output = std::vector<std::uint8_t>;

/// A photograph's crop of the train recipe.
struct Crop {
  Region box;
  Resampling resampling;
};

Crop drawn_crop(Size image, std::uint64_t position) {
  const micro::DrawnCrop crop = micro::drawn_crop(image, position);
  return {crop.box,
          {.from = {crop.box.width, crop.box.height},
           .to = output,
           .window = {0, 0, output.width, output.height},
           .mirrored = crop.mirrored}};
}

/// Returns the region of the image that the resampler reads.
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
  for (std::size_t n = 0; n < micro::photographs().size(); ++n) {
    const std::string& photograph = micro::photographs()[n];
    const Crop crop = drawn_crop(micro::size_of(*decoder, photograph), n);
    resample_exactly(resampler, crop, micro::decoded(*decoder, photograph, needed(resampler, crop)),
                     made);
    resample_plainly(crop.resampling, micro::decoded(*decoder, photograph, crop.box), plain.data(),
                     output_stride);
    if (made != plain) throw std::runtime_error("the bits differ");
  }
}

template <typename Resample>
void resample_crops(benchmark::State& state, Resample resample) {
  verify();
  cv::setNumThreads(1);
  const auto decoder = make_image_decoder();
  Resampler resampler;
  Output made(output_stride * 224);
  micro::beside_whole_decode(
      state, [&](const std::string& photograph, std::size_t number, Size size) {
        const Crop crop = drawn_crop(size, number);
        const PixelView view = micro::decoded(*decoder, photograph, needed(resampler, crop));
        const double begin = micro::thread_seconds();
        resample(resampler, crop, view, made);
        const double seconds = micro::thread_seconds() - begin;
        benchmark::DoNotOptimize(made.data());
        return seconds;
      });
}
BENCHMARK_CAPTURE(resample_crops, as_pillow, resample_exactly)->UseManualTime()->Iterations(2000);
BENCHMARK_CAPTURE(resample_crops, opencv, resample_by_opencv)->UseManualTime()->Iterations(2000);

}  // namespace
}  // namespace millrace
