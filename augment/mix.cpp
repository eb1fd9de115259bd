// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/mix_arithmetic.h>
#include <millrace/error.h>
#include <millrace/mix.h>
#include <millrace/mix_work.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <boost/random/beta_distribution.hpp>
#include <cmath>
#include <string>

#include "mix_parameters.h"

namespace millrace {
namespace {

constexpr int whole_weight = 256;

/// The mixing that was drawn for a batch. `share` is the weight of a sample's own class in its
/// target.
struct Drawn {
  std::array<std::int32_t, MixWork::mix_numbers> numbers{whole_weight, 0, 0, 0, 0};
  double share = 1;
};

/// Draws from Beta(alpha, alpha).
double draw_share(double alpha, Random& random) {
  const double share = boost::random::beta_distribution<double>(alpha, alpha)(random);
  // Boost divides gamma-distributed numbers. For a small alpha they may all underflow to 0, which
  // gives NaN. Shares for such an alpha are near 0 or 1.
  return std::isfinite(share) ? share : static_cast<double>(random.below(2));
}

Drawn draw_mixup(double alpha, Random& random) {
  Drawn drawn;
  drawn.numbers[0] =
      static_cast<std::int32_t>(std::lround(draw_share(alpha, random) * whole_weight));
  drawn.share = static_cast<double>(drawn.numbers[0]) / whole_weight;
  return drawn;
}

/// Draws a box as torchvision's v2.CutMix does. Its area is 1 minus the drawn share, its centre is
/// uniform in the image, and the image's edges clip it.
Drawn draw_cutmix(double alpha, int width, int height, Random& random) {
  const double share = draw_share(alpha, random);
  const auto x = static_cast<int>(random.below(static_cast<std::uint64_t>(width)));
  const auto y = static_cast<int>(random.below(static_cast<std::uint64_t>(height)));
  const double half = 0.5 * std::sqrt(1 - share);
  const int half_width = static_cast<int>(half * width);
  const int half_height = static_cast<int>(half * height);
  const int left = std::max(x - half_width, 0);
  const int top = std::max(y - half_height, 0);
  const int right = std::min(x + half_width, width);
  const int bottom = std::min(y + half_height, height);
  Drawn drawn;
  if (right <= left || bottom <= top) return drawn;
  drawn.numbers = {whole_weight, left, top, right - left, bottom - top};
  drawn.share = 1 - static_cast<double>(right - left) * (bottom - top) /
                        (static_cast<double>(width) * height);
  return drawn;
}

class MixTransform final : public BatchTransform {
 public:
  explicit MixTransform(const Mix& mix) : mix_(mix) {}

  std::vector<FieldSpec> fields(const SampleSpec& samples) const override {
    const FieldSpec& image = samples.fields()[samples.index_of("image")];
    if (image.dtype != DType::uint8 || image.variable || image.shape.rank() != 3 ||
        image.shape[2] > Conversion::max_channels)
      refuse("image", image, "uint8 [height, width, channels] with 1 to 4 channels");
    const FieldSpec& label = samples.fields()[samples.index_of("label")];
    if (label.dtype != DType::int64 || label.shape.rank() != 0)
      refuse("label", label, "an int64 scalar");
    std::vector<FieldSpec> added{
        {"target", DType::float32, {static_cast<std::size_t>(mix_.classes)}}};
    if (mix_.on == MixOn::device)
      added.push_back({.name = "mix",
                       .dtype = DType::int32,
                       .shape = {MixWork::mix_numbers},
                       .mixed_image = "image"});
    return added;
  }
  std::string stage() const override { return "mix"; }
  std::optional<std::uint64_t> fingerprint() const override {
    const double numbers[] = {
        static_cast<double>(mix_.classes), mix_.mixup, mix_.cutmix, mix_.cutmix_share, mix_.p,
        static_cast<double>(mix_.on)};
    return XXH3_64bits(numbers, sizeof numbers);
  }

  void run(MadeBatch& batch, Random& random) const override {
    const Tensor& images = batch["image"];
    const Drawn drawn =
        draw(static_cast<int>(images.shape[2]), static_cast<int>(images.shape[1]), random);
    const std::size_t samples = batch.size();
    std::vector<std::int32_t> numbers;
    const bool here = mix_.on == MixOn::worker;
    if (here) numbers.resize(samples * MixWork::mix_numbers);
    const std::span<std::int32_t> mixes =
        here ? std::span(numbers) : batch["mix"].as<std::int32_t>();
    for (std::size_t sample = 0; sample < samples; ++sample) {
      const std::size_t other = samples - 1 - sample;
      const bool pair = other != sample && batch.valid()[sample] != 0 && batch.valid()[other] != 0;
      const Drawn& used = pair ? drawn : Drawn();
      std::ranges::copy(used.numbers,
                        mixes.begin() + static_cast<std::ptrdiff_t>(sample * MixWork::mix_numbers));
      if (batch.valid()[sample] == 0) continue;
      add_share(batch, sample, sample, used.share);
      if (pair) add_share(batch, sample, other, 1 - used.share);
    }
    if (!here) return;
    MixWork{.images = images.as<std::uint8_t>().data(),
            .mixes = numbers.data(),
            .samples = samples,
            .height = images.shape[1],
            .width = images.shape[2],
            .channels = images.shape[3]}
        .run_on_host();
  }

 private:
  [[noreturn]] static void refuse(const char* name, const FieldSpec& field, const char* wanted) {
    throw Error(ErrorCode::invalid_argument,
                "the sample field \"" + std::string(name) + "\" is " + to_string(field.dtype) +
                    " " + field.shape.to_string() + "; to be mixed it must be " + wanted);
  }

  Drawn draw(int width, int height, Random& random) const {
    if (random.uniform() >= mix_.p) return {};
    const bool cut = mix_.mixup <= 0 || (mix_.cutmix > 0 && random.uniform() < mix_.cutmix_share);
    return cut ? draw_cutmix(mix_.cutmix, width, height, random) : draw_mixup(mix_.mixup, random);
  }

  /// Adds `share` to the entry of a sample's target for the class of sample `of`.
  void add_share(const MadeBatch& batch, std::size_t sample, std::size_t of, double share) const {
    const std::int64_t label = batch["label"].as<std::int64_t>()[of];
    if (label < 0 || label >= mix_.classes)
      throw Error(ErrorCode::invalid_argument, "record " + std::to_string(batch.indices()[of]) +
                                                   " has the label " + std::to_string(label) +
                                                   ", and mix.classes is " +
                                                   std::to_string(mix_.classes));
    const auto classes = static_cast<std::size_t>(mix_.classes);
    batch["target"].as<float>()[sample * classes + static_cast<std::size_t>(label)] +=
        static_cast<float>(share);
  }

  const Mix mix_;
};

}  // namespace

std::shared_ptr<const BatchTransform> mix_transform(const Mix& mix) {
  check_mix(mix, "mix");
  return std::make_shared<const MixTransform>(mix);
}

}  // namespace millrace
