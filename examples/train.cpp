// SPDX-License-Identifier: Apache-2.0
//
//   train DATASET [--epochs N] [--batch-size N] [--accumulate N] [--holdout SHARE]
//
// A small complete trainer: a perceptron with one hidden layer on thumbnails of a packed dataset, with an evaluation pass over a held-out
// share after each epoch. Its steps run on a stream, behind the copies of their batches, as on a GPU. With --accumulate N each
// batch comes in N parts, whose gradients are summed up while the rest is still being made and copied.

#include <millrace/host_device.h>
#include <millrace/image_transform.h>
#include <millrace/pipeline.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "perceptron.h"

namespace {

constexpr int thumbnail = 32;

struct Options {
  std::string dataset{};
  std::uint64_t epochs = 60;
  std::size_t batch_size = 32;
  std::size_t accumulate = 1;
  double holdout = 0.2;
};

Options parse(int argc, char** argv) {
  Arguments arguments(argc, argv);
  Options options{.dataset = arguments.dataset()};
  arguments.take("--epochs", options.epochs);
  arguments.take("--batch-size", options.batch_size);
  arguments.take("--accumulate", options.accumulate);
  arguments.take("--holdout", options.holdout);
  arguments.finish();
  if (!(options.holdout > 0 && options.holdout < 1)) throw std::invalid_argument("--holdout must be between 0 and 1");
  return options;
}

/// The model, and the stream that its steps run on. What they add up to is looked at after `synchronize`.
class Trainer {
 public:
  explicit Trainer(std::size_t classes) : model_(thumbnail * thumbnail * 3, 64, classes, 1) {}

  millrace::HostStream& stream() { return stream_; }

  /// Enqueues the gradients of a batch or a part of one; with `only_look` they count for nothing.
  template <typename BatchOrPart>
  void add(const BatchOrPart& samples, bool only_look = false) {
    const millrace::Tensor images = samples.images();
    const millrace::Tensor labels = samples.labels();
    run([this, images, labels, only_look, valid = std::vector<std::uint8_t>(samples.valid().begin(), samples.valid().end())] {
      const auto sums = model_.add_gradients(images.as<std::uint8_t>(), labels.as<std::int64_t>(), valid);
      sums_.loss += sums.loss;
      sums_.right += sums.right;
      sums_.samples += sums.samples;
      if (only_look) std::fill(model_.gradients().begin(), model_.gradients().end(), 0.0F);
    });
  }

  void step(std::size_t samples, double rate) {
    run([this, samples, rate] { model_.step(static_cast<double>(samples), static_cast<float>(rate)); });
  }

  /// What was added since the last time.
  Perceptron::Sums synchronize() {
    stream_.synchronize();
    if (error_) std::rethrow_exception(error_);
    return std::exchange(sums_, {});
  }

  /// Share of the time from the first step to the last in which the stream had none to run.
  double idle() const { return idle_.count() > 0 ? idle_ / (idle_ + busy_) : 0; }

 private:
  using Clock = std::chrono::steady_clock;

  template <typename Function>
  void run(Function function) {
    stream_.launch([this, function = std::move(function)]() mutable noexcept {
      const Clock::time_point begin = Clock::now();
      if (last_ != Clock::time_point()) idle_ += begin - last_;
      try {
        if (!error_) function();
      } catch (...) {
        error_ = std::current_exception();
      }
      last_ = Clock::now();
      busy_ += last_ - begin;
    });
  }

  Perceptron model_;
  Perceptron::Sums sums_;
  std::exception_ptr error_;
  Clock::time_point last_{};
  std::chrono::duration<double> busy_{0};
  std::chrono::duration<double> idle_{0};
  millrace::HostStream stream_;  // ends first
};

void train_batch(Trainer& trainer, const millrace::Batch& batch, double rate) {
  for (const millrace::Part& part : batch.parts()) trainer.add(part);
  trainer.step(batch.valid_count(), rate);
}

void train(const Options& options) {
  const auto dataset = millrace::open_dataset(options.dataset);
  if (dataset->classes().empty()) throw std::invalid_argument(options.dataset + " has no classes to tell apart");
  const auto held_out = [&](std::uint64_t index) {
    return millrace::Random(3, index).uniform() < options.holdout;  // the same ones in every run
  };
  const auto trained_on = [&](std::uint64_t index) { return !held_out(index); };

  const auto runtime = millrace::make_runtime();
  const auto device = std::make_shared<millrace::HostDevice>(millrace::HostDeviceOptions{.copies = true});
  millrace::Recipe recipe = millrace::Recipe::train(thumbnail);
  recipe.crop = millrace::RandomResizedCrop{.scale = {0.7, 1.0}};
  millrace::Pipeline training(dataset, millrace::image_transform(recipe), device,
                              {.batch_size = options.batch_size,
                               .seed = 7,
                               .order = millrace::Order::shuffled().filtered(dataset->size(), trained_on),
                               .epochs = options.epochs,
                               .micro_batches = options.accumulate,
                               .runtime = runtime});
  millrace::Pipeline evaluation(dataset, millrace::image_transform(millrace::Recipe::eval(thumbnail)), device,
                                {.batch_size = options.batch_size,
                                 .order = millrace::Order::sequential().filtered(dataset->size(), held_out),
                                 .epochs = options.epochs,
                                 .runtime = runtime});
  Trainer trainer(dataset->classes().size());
  for (std::uint64_t epoch = 0; epoch < options.epochs; ++epoch) {
    const double rate = 0.01 * (1 - static_cast<double>(epoch) / static_cast<double>(options.epochs));
    bool last = false;
    while (!last) {
      const millrace::Batch batch = training.next_in_parts(trainer.stream());
      last = batch.last_in_epoch();
      train_batch(trainer, batch, rate);
    }
    const Perceptron::Sums trained = trainer.synchronize();
    for (last = false; !last;) {
      const millrace::Batch batch = evaluation.next(trainer.stream());
      last = batch.last_in_epoch();
      trainer.add(batch, true);
    }
    const Perceptron::Sums evaluated = trainer.synchronize();
    std::printf("epoch %llu: loss %.3f, training accuracy %.1f%%, held out %.1f%%\n", static_cast<unsigned long long>(epoch),
                trained.loss / trained.samples, 100 * trained.right / trained.samples, 100 * evaluated.right / evaluated.samples);
  }
  std::printf("idle %.1f%%; %s\n", 100 * trainer.idle(), training.report().verdict.text.c_str());
}

}  // namespace

int main(int argc, char** argv) try { train(parse(argc, argv)); } catch (const std::exception& error) {
  std::cerr << "train: " << error.what() << '\n';
  return 1;
}
