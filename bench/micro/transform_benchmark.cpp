// SPDX-License-Identifier: Apache-2.0
//
// Cost of a sample from the encoded bytes to the pixels in its slot: a whole transform. Also the
// time that each operation on pixels adds, at 224 x 224. "of_decode" is its share of
// libjpeg-turbo's whole decode. "of_crop" is its share of decode and resampling of the train
// recipe's crop. Targets for "of_decode": 0.03 for color_jitter_without_hue and 0.25 for
// trivial_augment_wide.
#include <millrace/colour_operations.h>
#include <millrace/detail/resample.h>
#include <millrace/image_transform.h>
#include <millrace/policies.h>
#include <millrace/warp_operations.h>

#include <array>

#include "micro/photographs.h"

namespace millrace {
namespace {

/// The transform of one worker, and memory for its sample.
class Samples {
 public:
  explicit Samples(const Recipe& recipe) : transform_(image_transform(recipe)) {}

  /// Makes a sample. Returns the time in seconds.
  double make(const std::string& photograph, std::uint64_t position) {
    const std::array fields{RecordField{"image", micro::bytes_of(photograph)},
                            RecordField{"label", std::as_bytes(std::span(&label_, 1))}};
    Random random(5, position);
    const double begin = micro::thread_seconds();
    Sample sample(transform_->spec(), places_);
    const Status made = worker_->make(Record(0, fields), random, sample);
    const double seconds = micro::thread_seconds() - begin;
    if (!made.is_ok()) throw std::runtime_error(made.reason());
    return seconds;
  }
  const std::vector<std::uint8_t>& pixels() const { return pixels_; }

 private:
  std::shared_ptr<const Transform> transform_;
  std::unique_ptr<TransformWorker> worker_ = transform_->make_worker();
  std::int64_t label_ = 0;
  std::vector<std::uint8_t> pixels_ = std::vector<std::uint8_t>(std::size_t{224} * 224 * 3);
  std::vector<Tensor> places_{Tensor{pixels_.data(), DType::uint8, {224, 224, 3}},
                              Tensor{&label_, DType::int64, {}}};
};

/// Reference implementation of a sample of the train recipe.
void train_plainly(const PixelView& whole, std::size_t number, std::uint8_t* made) {
  const micro::DrawnCrop crop = micro::drawn_crop({whole.width, whole.height}, number);
  resample_plainly({.from = {crop.box.width, crop.box.height},
                    .to = {224, 224},
                    .window = {0, 0, 224, 224},
                    .mirrored = crop.mirrored},
                   micro::part_of(whole, crop.box), made, 672);
}

/// Reference implementation for the eval recipe, for photographs that are not smaller than its
/// window.
void evaluate_plainly(const PixelView& whole, std::size_t, std::uint8_t* made) {
  const Size to = resize_shorter({whole.width, whole.height}, 256);
  resample_plainly(
      {.from = {whole.width, whole.height}, .to = to, .window = center_crop(to, {224, 224})}, whole,
      made, 672);
}

using Plainly = void (*)(const PixelView&, std::size_t, std::uint8_t*);

void verify(const Recipe& recipe, Plainly plainly) {
  const auto decoder = make_image_decoder();
  micro::WholeDecode whole;
  Samples samples(recipe);
  std::vector<std::uint8_t> plain(samples.pixels().size());
  for (std::size_t n = 0; n < micro::photographs().size(); ++n) {
    const std::string& photograph = micro::photographs()[n];
    samples.make(photograph, n);
    plainly(whole.run(photograph, micro::size_of(*decoder, photograph)), n, plain.data());
    if (samples.pixels() != plain) throw std::runtime_error("the bits differ");
  }
}

void transform(benchmark::State& state, Recipe (*recipe)(int), Plainly plainly) {
  verify(recipe(224), plainly);
  Samples samples(recipe(224));
  micro::beside_whole_decode(state, [&](const std::string& photograph, std::size_t number, Size) {
    return samples.make(photograph, number);
  });
}
BENCHMARK_CAPTURE(transform, train, Recipe::train, train_plainly)
    ->UseManualTime()
    ->Iterations(1000);
BENCHMARK_CAPTURE(transform, eval, Recipe::eval, evaluate_plainly)
    ->UseManualTime()
    ->Iterations(1000);

/// Measures the difference between samples with many runs of an operation and samples without it.
void operate(benchmark::State& state, const Operation& operation) {
  constexpr std::size_t runs = 16;
  Recipe recipe{{224, 224}, {RandomResizedCrop{}}};
  Samples without(recipe);
  recipe.ops.insert(recipe.ops.end(), runs, operation);
  Samples with(recipe);
  double all = 0;
  double crops = 0;
  micro::beside_whole_decode(state, [&](const std::string& photograph, std::size_t number, Size) {
    const double crop = without.make(photograph, number);
    const double seconds = std::max(0.0, with.make(photograph, number) - crop) / runs;
    all += seconds;
    crops += crop;
    return seconds;
  });
  state.counters["of_crop"] = all / crops;
}

const bool operations_are_registered = [] {
  const std::pair<const char*, Operation> operations[] = {
      {"color_jitter_without_hue", ColorJitter::of(0.4, 0.4, 0.4)},
      {"color_jitter", ColorJitter::of(0.4, 0.4, 0.4, 0.1)},
      {"brightness", ColorJitter::of(0.4)},
      {"contrast", ColorJitter::of(0, 0.4)},
      {"saturation", ColorJitter::of(0, 0, 0.4)},
      {"hue", ColorJitter::of(0, 0, 0, 0.1)},
      {"grayscale", Grayscale{}},
      {"gaussian_blur_9", GaussianBlur{.kernel_size = 9}},
      {"gaussian_blur_23", GaussianBlur{.kernel_size = 23}},
      {"random_solarize", RandomSolarize{.threshold = 128, .p = 1}},
      {"random_posterize", RandomPosterize{.bits = 4, .p = 1}},
      {"random_equalize", RandomEqualize{.p = 1}},
      {"random_autocontrast", RandomAutocontrast{.p = 1}},
      {"random_invert", RandomInvert{.p = 1}},
      {"random_adjust_sharpness", RandomAdjustSharpness{.sharpness_factor = 1.7, .p = 1}},
      {"random_affine", RandomAffine{.degrees = {-15, 15}}},
      {"random_rotation_bilinear",
       RandomRotation{.degrees = {-15, 15}, .interpolation = Interpolation::bilinear}},
      {"random_perspective", RandomPerspective{.p = 1}},
      {"random_erasing", RandomErasing{.p = 1}},
      {"rand_augment", RandAugment{}},
      {"trivial_augment_wide", TrivialAugmentWide{}},
      {"trivial_augment_wide_bilinear",
       TrivialAugmentWide{.interpolation = Interpolation::bilinear}},
      {"auto_augment", AutoAugment{}},
      {"aug_mix", AugMix{}},
      {"three_augment", ThreeAugment{}},
  };
  for (const auto& [name, operation] : operations)
    benchmark::RegisterBenchmark(
        (std::string("operation/") + name).c_str(),
        [operation = operation](benchmark::State& state) { operate(state, operation); })
        ->UseManualTime()
        ->Iterations(500)
        ->Unit(benchmark::kMicrosecond);
  return true;
}();

}  // namespace
}  // namespace millrace
