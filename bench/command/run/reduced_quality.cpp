// SPDX-License-Identifier: Apache-2.0
#include "command/run/reduced_quality.h"

#include <millrace/host_device.h>
#include <millrace/image_transform.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace millrace::cli {
namespace {

constexpr std::uint64_t max_samples = 256;

Pipeline pipeline_of(const BenchSettings& settings, Recipe recipe, const DecodeLimits& limits,
                     Resolution resolution) {
  recipe.resolution = resolution;
  return Pipeline(settings.dataset, image_transform(recipe, limits), std::make_shared<HostDevice>(),
                  {.batch_size = std::min<std::size_t>(settings.pipeline.batch_size, max_samples),
                   .seed = settings.pipeline.seed,
                   .epochs = 1,
                   .last_batch = LastBatch::pad,
                   .bad_records = BadRecords::mark,
                   .runtime = settings.pipeline.runtime});
}

double mean_square(std::span<const std::uint8_t> made, std::span<const std::uint8_t> exact) {
  std::uint64_t sum = 0;
  for (std::size_t n = 0; n < made.size(); ++n) {
    const int difference = made[n] - exact[n];
    sum += static_cast<std::uint64_t>(difference * difference);
  }
  return static_cast<double>(sum) / static_cast<double>(made.size());
}

double decibels(double mean_square) { return 10 * std::log10(255.0 * 255.0 / mean_square); }

}  // namespace

std::optional<ReducedQuality> measure_reduced_quality(const BenchSettings& settings,
                                                      const Recipe& recipe,
                                                      const DecodeLimits& limits) {
  if (recipe.resolution == Resolution::exact) return {};
  Pipeline reduced = pipeline_of(settings, recipe, limits, Resolution::reduced);
  Pipeline exact = pipeline_of(settings, recipe, limits, Resolution::exact);
  ReducedQuality quality;
  double sum = 0;
  double worst = 0;
  while (quality.compared < max_samples) {
    const Batch made = reduced.next();
    const Batch wanted = exact.next();
    if (!made) break;
    const auto pixels = made.images().as<std::uint8_t>();
    const auto exact_pixels = wanted.images().as<std::uint8_t>();
    const std::size_t each = pixels.size() / made.valid().size();
    for (std::size_t sample = 0; sample < made.valid().size(); ++sample) {
      if (made.valid()[sample] == 0 || wanted.valid()[sample] == 0) continue;
      ++quality.compared;
      const double square = mean_square(pixels.subspan(sample * each, each),
                                        exact_pixels.subspan(sample * each, each));
      if (square == 0) continue;
      ++quality.differing;
      sum += square;
      worst = std::max(worst, square);
    }
  }
  if (quality.differing > 0) {
    quality.psnr_db = decibels(sum / static_cast<double>(quality.differing));
    quality.lowest_psnr_db = decibels(worst);
  }
  return quality;
}

}  // namespace millrace::cli
