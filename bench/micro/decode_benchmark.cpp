// SPDX-License-Identifier: Apache-2.0
//
// What it costs to decode a photograph as a whole, and the box of a training crop of it.
#include "micro/photographs.h"

namespace millrace {
namespace {

Region whole_of(Size size, std::size_t) { return {0, 0, size.width, size.height}; }
Region crop_of(Size size, std::size_t number) { return micro::drawn_crop(size, number).box; }

/// Compares with libjpeg-turbo's decode of the whole.
void verify(Region (*region_of)(Size, std::size_t)) {
  const auto decoder = make_image_decoder();
  micro::WholeDecode whole;
  for (std::size_t n = 0; n < micro::photographs().size(); ++n) {
    const std::string& photograph = micro::photographs()[n];
    const Size size = micro::size_of(*decoder, photograph);
    const Region region = region_of(size, n);
    if (!micro::same_pixels(micro::decoded(*decoder, photograph, region),
                            micro::part_of(whole.run(photograph, size), region)))
      throw std::runtime_error("the bits differ");
  }
}

void decode(benchmark::State& state, Region (*region_of)(Size, std::size_t)) {
  verify(region_of);
  const auto decoder = make_image_decoder();
  micro::beside_whole_decode(
      state, [&](const std::string& photograph, std::size_t number, Size size) {
        const Region region = region_of(size, number);
        const double begin = micro::thread_seconds();
        benchmark::DoNotOptimize(micro::decoded(*decoder, photograph, region).pixels);
        return micro::thread_seconds() - begin;
      });
}
BENCHMARK_CAPTURE(decode, whole, whole_of)->UseManualTime()->Iterations(1000);
BENCHMARK_CAPTURE(decode, train_crop, crop_of)->UseManualTime()->Iterations(1000);

}  // namespace
}  // namespace millrace
