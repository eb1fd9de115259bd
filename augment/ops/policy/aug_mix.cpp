// SPDX-License-Identifier: Apache-2.0
#include <millrace/policies.h>

#include <algorithm>
#include <vector>

#include "ops/operation_of.h"
#include "ops/policy/augmentation_space.h"
#include "ops/policy/dirichlet.h"
#include "ops/warp/warp_parameters.h"
#include "pixels/mixture.h"

namespace millrace {
namespace {

/// Draws two sets of weights from Dirichlet distributions whose parameters are all `alpha`. The
/// first set weights the image and the mixture of all chains. The second set weights the chains.
/// Then each chain draws its depth. It draws each of its operations uniformly, then its magnitude
/// and sign, if it has them. Source: `AugMix` in torchvision.
class AugMixOperation final : public OperationOf<AugMix, PixelOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override {
    parameters.integer("severity", parameters_.severity, 1, magnitudes);
    parameters.integer("mixture_width", parameters_.mixture_width, 1, 100);
    parameters.integer("chain_depth", parameters_.chain_depth, -1, 100);
    parameters.number("alpha", parameters_.alpha, {0.01, 1000});
    parameters.flag("all_ops", parameters_.all_ops);
    describe_warp_interpolation(parameters, parameters_.interpolation, Interpolation::bilinear);
    parameters.colour("fill", parameters_.fill);
  }
  bool moves_alone() const override { return true; }
  ScratchSizes scratch(Size size) const override {
    ScratchSizes sizes = augment_scratch(size);
    sizes.insert(sizes.begin(), mixture_bytes(size));
    return sizes;
  }
  void run(SampleImage& image, Random& random) const override {
    const auto chains = static_cast<std::size_t>(parameters_.mixture_width);
    const std::vector<float> shares = drawn_dirichlet(parameters_.alpha, 2, random);
    const std::vector<float> weights = drawn_dirichlet(parameters_.alpha, chains, random);
    const Scratch::Borrowed memory = image.scratch.borrow(mixture_bytes(image.size));
    auto* const sums = reinterpret_cast<float*>(memory.data());
    std::uint8_t* const original = memory.data() + image.bytes() * sizeof(float);
    std::copy_n(image.pixels, image.bytes(), original);
    const std::span pixels(image.pixels, image.bytes());
    begin_mixture(pixels, shares[0], sums);
    for (const float weight : weights) {
      std::copy_n(original, image.bytes(), image.pixels);
      run_chain(image, random);
      add_to_mixture(pixels, weight * shares[1], sums);
    }
    end_mixture(sums, pixels);
  }

 private:
  /// Number of magnitudes. Only the first `severity` of them are drawn.
  static constexpr int magnitudes = 10;

  /// Returns the bytes of the sums and of a copy of the image.
  static std::size_t mixture_bytes(Size size) { return rgb_bytes(size) * (sizeof(float) + 1); }

  void run_chain(SampleImage& image, Random& random) const {
    const std::span<const Augmenting> space = aug_mix_space(parameters_.all_ops);
    const auto below = [&](int bound) {
      return static_cast<int>(random.below(static_cast<std::uint64_t>(bound)));
    };
    const int depth = parameters_.chain_depth > 0 ? parameters_.chain_depth : 1 + below(3);
    for (int n = 0; n < depth; ++n) {
      const Augmenting& what = space[random.below(space.size())];
      const int bin = what.has_magnitudes() ? below(parameters_.severity) : 0;
      augment_at(image, what, bin, magnitudes, {parameters_.interpolation, parameters_.fill},
                 random);
    }
  }
};

}  // namespace

Operation::Operation(const AugMix& parameters)
    : implementation_(std::make_shared<AugMixOperation>(parameters)) {}

}  // namespace millrace
