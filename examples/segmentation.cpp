// SPDX-License-Identifier: Apache-2.0
//
//   segmentation DATASET [--classes N] [--size N] [--epochs N] [--batch-size N] [--rate R]
//                [--holdout SHARE]
//
// Predicts the class of each pixel of a photograph by a softmax over its colour. The model is
// trained by gradient descent on the host. DATASET's records have an "image" and a "mask", as
// `millrace pack --masks` makes them. A mask is a PNG of the same size whose values are classes
// from 0; 255 means no class. Crops and flips are applied to the mask, too.

#include <millrace/host_device.h>
#include <millrace/image_transform.h>
#include <millrace/pipeline.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "arguments.h"

namespace {

struct Options {
  std::string dataset{};
  std::uint64_t classes = 21;
  std::uint64_t size = 96;
  std::uint64_t epochs = 5;
  std::uint64_t batch_size = 16;
  double rate = 1;
  double holdout = 0.2;
};

constexpr std::uint8_t nobodys = 255;

Options parse(int argc, char** argv) {
  Arguments arguments(argc, argv);
  Options options{.dataset = arguments.dataset()};
  arguments.take("--classes", options.classes);
  arguments.take("--size", options.size);
  arguments.take("--epochs", options.epochs);
  arguments.take("--batch-size", options.batch_size);
  arguments.take("--rate", options.rate);
  arguments.take("--holdout", options.holdout);
  arguments.finish();
  if (options.classes < 2 || options.classes > nobodys)
    throw std::invalid_argument("--classes must be from 2 to 255");
  if (options.size < 1 || options.size > 4096)
    throw std::invalid_argument("--size must be from 1 to 4096");
  if (!(options.holdout > 0 && options.holdout < 1))
    throw std::invalid_argument("--holdout must be between 0 and 1");
  return options;
}

/// Sums over the pixels of a batch or an epoch.
struct Sums {
  double loss = 0;
  double pixels = 0;
  /// Numbers of pixels per class: with this label, with this prediction, and with both.
  std::vector<double> are, said, right;

  explicit Sums(std::size_t classes) : are(classes), said(classes), right(classes) {}
  double accuracy() const {
    double sum = 0;
    for (const double of_class : right) sum += of_class;
    return sum / pixels;
  }
  /// Mean of intersection / union over the classes that occur.
  double mean_iou() const {
    double sum = 0;
    double classes = 0;
    for (std::size_t one = 0; one < are.size(); ++one) {
      if (are[one] + said[one] == 0) continue;
      sum += right[one] / (are[one] + said[one] - right[one]);
      ++classes;
    }
    return sum / classes;
  }
};

/// A softmax over the levels of a pixel, their products and 1.
class PixelClassifier {
 public:
  explicit PixelClassifier(std::size_t classes)
      : classes_(classes),
        weights_(classes * inputs),
        gradient_(classes * inputs),
        odds_(classes) {}

  /// Adds a batch to `sums`, and makes a step along its gradient if `rate` > 0.
  void look(const millrace::Batch& batch, double rate, Sums& sums) {
    const auto levels = batch.images().as<std::uint8_t>();
    const auto mask = batch["mask"].as<std::uint8_t>();
    const std::size_t pixels = batch.size() * (mask.size() / batch.images().shape[0]);
    std::ranges::fill(gradient_, 0.0);
    double taken = 0;
    for (std::size_t pixel = 0; pixel < pixels; ++pixel)
      if (mask[pixel] != nobodys) {
        look(&levels[3 * pixel], mask[pixel], sums);
        ++taken;
      }
    if (rate == 0 || taken == 0) return;
    for (std::size_t n = 0; n < weights_.size(); ++n) weights_[n] -= rate * gradient_[n] / taken;
  }

 private:
  static constexpr std::size_t inputs = 10;

  static std::array<double, inputs> inputs_of(const std::uint8_t* level) {
    const auto scaled = [&](int channel) { return level[channel] / 127.5 - 1; };
    const double red = scaled(0);
    const double green = scaled(1);
    const double blue = scaled(2);
    return {1,          red,         green,        blue,          red * red,
            red * blue, red * green, green * blue, green * green, blue * blue};
  }

  void look(const std::uint8_t* level, std::size_t right, Sums& sums) {
    if (right >= classes_)
      throw std::runtime_error("a mask has the class " + std::to_string(right) +
                               ", which is not below --classes " + std::to_string(classes_));
    const std::array<double, inputs> in = inputs_of(level);
    for (std::size_t one = 0; one < classes_; ++one) {
      odds_[one] = 0;
      for (std::size_t n = 0; n < inputs; ++n) odds_[one] += weights_[one * inputs + n] * in[n];
    }
    const auto best = std::ranges::max_element(odds_);
    const auto said = static_cast<std::size_t>(best - odds_.begin());
    const double largest = *best;
    double sum = 0;
    for (double& odds : odds_) sum += odds = std::exp(odds - largest);
    for (std::size_t one = 0; one < classes_; ++one) {
      const double wrong = odds_[one] / sum - (one == right ? 1 : 0);
      for (std::size_t n = 0; n < inputs; ++n) gradient_[one * inputs + n] += wrong * in[n];
    }
    sums.loss -= std::log(odds_[right] / sum);
    ++sums.pixels;
    ++sums.are[right];
    ++sums.said[said];
    if (said == right) ++sums.right[right];
  }

  std::size_t classes_;
  std::vector<double> weights_;
  std::vector<double> gradient_;
  std::vector<double> odds_;
};

/// Returns a recipe: random crops and flips for training, or the whole image for evaluation. Pixels
/// outside the image have no class.
millrace::Recipe recipe_of(int size, bool training) {
  millrace::Recipe recipe{{size, size},
                          {millrace::Resize{.exact = {size, size}}, millrace::CenterCrop{}}};
  if (training)
    recipe.ops = {millrace::RandomResizedCrop{.scale = {0.25, 1}},
                  millrace::RandomHorizontalFlip{}};
  recipe.targets = {{"mask", millrace::MaskTarget{.fill = nobodys}}};
  return recipe;
}

void train(const Options& options) {
  const auto dataset = millrace::open_dataset(options.dataset);
  const auto held_out = [&](std::uint64_t index) {
    return millrace::Random(3, index).uniform() < options.holdout;  // the same records in every run
  };
  const auto trained_on = [&](std::uint64_t index) { return !held_out(index); };
  const auto runtime = millrace::make_runtime();
  const auto device = std::make_shared<millrace::HostDevice>();
  const auto pipeline = [&](bool training, const millrace::Order& order) {
    return millrace::Pipeline(
        dataset, millrace::image_transform(recipe_of(static_cast<int>(options.size), training)),
        device,
        {.batch_size = static_cast<std::size_t>(options.batch_size),
         .seed = 7,
         .order = order,
         .epochs = options.epochs,
         .runtime = runtime});
  };
  millrace::Pipeline training =
      pipeline(true, millrace::Order::shuffled().filtered(dataset->size(), trained_on));
  millrace::Pipeline evaluation =
      pipeline(false, millrace::Order::sequential().filtered(dataset->size(), held_out));

  const auto classes = static_cast<std::size_t>(options.classes);
  PixelClassifier model(classes);
  for (std::uint64_t epoch = 0; epoch < options.epochs; ++epoch) {
    Sums trained(classes);
    Sums evaluated(classes);
    for (bool last = false; !last;) {
      const millrace::Batch batch = training.next();
      last = batch.last_in_epoch();
      model.look(batch, options.rate, trained);
    }
    for (bool last = false; !last;) {
      const millrace::Batch batch = evaluation.next();
      last = batch.last_in_epoch();
      model.look(batch, 0, evaluated);
    }
    std::printf("epoch %llu: loss %.3f, held out: accuracy %.3f, mean IoU %.3f of %.0f pixels\n",
                static_cast<unsigned long long>(epoch), trained.loss / trained.pixels,
                evaluated.accuracy(), evaluated.mean_iou(), evaluated.pixels);
  }
  std::printf("%s\n", training.report().verdict.text.c_str());
}

}  // namespace

int main(int argc, char** argv) try {
  train(parse(argc, argv));
} catch (const std::exception& error) {
  std::cerr << "segmentation: " << error.what() << '\n';
  return 1;
}
