// SPDX-License-Identifier: Apache-2.0
//
//   sparse DATASET [--features N] [--longest N] [--epochs N] [--batch-size N] [--rate R]
//
// Logistic regression on sparse features, trained by gradient descent on the host. Each record has
// a list of its features, of any length, and a label of 0 or 1. DATASET describes the arrays.
// offsets.npy contains the start and end of each record's list in features.npy:
//
//   {"format": "arrays",
//    "fields": {"features": {"npy": "features.npy", "offsets": "offsets.npy"},
//               "label": {"npy": "label.npy", "as": "int64"}}}
//
// Lists are truncated to --longest values, and padded with -1 to that length in a batch. No image
// library is linked.

#include <millrace/host_device.h>
#include <millrace/pipeline.h>
#include <millrace/raw_transform.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "arguments.h"

namespace {

struct Options {
  std::string dataset{};
  std::uint64_t features = 1 << 16;
  std::uint64_t longest = 64;
  std::uint64_t epochs = 5;
  std::uint64_t batch_size = 32;
  double rate = 0.5;
};

Options parse(int argc, char** argv) {
  Arguments arguments(argc, argv);
  Options options{.dataset = arguments.dataset()};
  arguments.take("--features", options.features);
  arguments.take("--longest", options.longest);
  arguments.take("--epochs", options.epochs);
  arguments.take("--batch-size", options.batch_size);
  arguments.take("--rate", options.rate);
  arguments.finish();
  if (options.features < 1 || options.features > std::uint64_t{1} << 31)
    throw std::invalid_argument("--features must be from 1 to 2147483648");
  return options;
}

class Regression {
 public:
  explicit Regression(std::size_t features) : weights_(features) {}

  struct Sums {
    double loss = 0;
    double right = 0;
    double samples = 0;
  };

  /// Makes a step along the gradient of one record.
  void train(std::span<const std::int32_t> features, bool label, double rate, Sums& sums) {
    double logit = double{bias_};
    for (const std::int32_t feature : features) logit += double{weights_[checked(feature)]};
    const double target = label ? 1 : 0;
    sums.loss += std::log1p(std::exp(-std::abs(logit))) + std::max(logit, 0.0) - logit * target;
    sums.right += (logit > 0) == label ? 1 : 0;
    sums.samples += 1;
    const auto step = static_cast<float>(rate * (target - 1 / (1 + std::exp(-logit))));
    for (const std::int32_t feature : features) weights_[checked(feature)] += step;
    bias_ += step;
  }

 private:
  std::size_t checked(std::int32_t feature) const {
    if (feature >= 0 && static_cast<std::size_t>(feature) < weights_.size())
      return static_cast<std::size_t>(feature);
    throw std::runtime_error("feature " + std::to_string(feature) + " is not in 0 .. --features " +
                             std::to_string(weights_.size()) + " - 1");
  }

  std::vector<float> weights_;
  float bias_ = 0;
};

void train(const Options& options) {
  const auto dataset = millrace::open_dataset(options.dataset);
  const auto longest = static_cast<std::size_t>(options.longest);
  const auto transform = millrace::raw_transform(
      {{.spec = {"features", millrace::DType::int32, {longest}, true}, .fill = -1},
       {.spec = {"label", millrace::DType::int64, {}}}});
  millrace::Pipeline training(dataset, transform, std::make_shared<millrace::HostDevice>(),
                              {.batch_size = static_cast<std::size_t>(options.batch_size),
                               .seed = 7,
                               .epochs = options.epochs});
  Regression model(static_cast<std::size_t>(options.features));
  for (std::uint64_t epoch = 0; epoch < options.epochs; ++epoch) {
    Regression::Sums sums;
    for (bool last = false; !last;) {
      const millrace::Batch batch = training.next();
      last = batch.last_in_epoch();
      const auto features = batch["features"].as<std::int32_t>();
      const auto lengths = batch["features.length"].as<std::uint32_t>();
      const auto labels = batch.labels().as<std::int64_t>();
      for (std::size_t record = 0; record < batch.size(); ++record)
        model.train(features.subspan(record * longest, lengths[record]), labels[record] != 0,
                    options.rate, sums);
    }
    std::printf("epoch %llu: loss %.3f, accuracy %.1f%%\n", static_cast<unsigned long long>(epoch),
                sums.loss / sums.samples, 100 * sums.right / sums.samples);
  }
  std::printf("%s\n", training.report().verdict.text.c_str());
}

}  // namespace

int main(int argc, char** argv) try {
  train(parse(argc, argv));
} catch (const std::exception& error) {
  std::cerr << "sparse: " << error.what() << '\n';
  return 1;
}
