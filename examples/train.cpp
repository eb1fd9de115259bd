// SPDX-License-Identifier: Apache-2.0
//
//   train DATASET [--device auto|host|cuda:N] [--epochs N] [--batch-size N] [--accumulate N]
//   [--holdout SHARE]
//
// A small complete trainer: a perceptron with one hidden layer on thumbnails of a packed dataset,
// with an evaluation pass over a held-out share after each epoch. Its steps run on a stream, behind
// the copies of their batches. Its images are normalised float32. With --accumulate N each batch
// comes in N parts, whose gradients are summed up while the other parts are still being made and
// copied. CUDA is used if it is available. Steps are then graphs: one for each slot
// (cuda_trainer.cpp).

#include <millrace/image_transform.h>
#include <millrace/pipeline.h>

#include <charconv>
#include <cstdio>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>

#include "arguments.h"
#include "trainer.h"

namespace {

constexpr int thumbnail = 32;

struct Options {
  std::string dataset{};
  std::string device = "auto";
  std::uint64_t epochs = 60;
  std::size_t batch_size = 32;
  std::size_t accumulate = 1;
  double holdout = 0.2;
};

Options parse(int argc, char** argv) {
  Arguments arguments(argc, argv);
  Options options{.dataset = arguments.dataset()};
  arguments.take("--device", options.device);
  arguments.take("--epochs", options.epochs);
  arguments.take("--batch-size", options.batch_size);
  arguments.take("--accumulate", options.accumulate);
  arguments.take("--holdout", options.holdout);
  arguments.finish();
  if (!(options.holdout > 0 && options.holdout < 1))
    throw std::invalid_argument("--holdout must be between 0 and 1");
  return options;
}

std::unique_ptr<Trainer> make_trainer(const std::string& device, const TrainerOptions& options) {
  if (device == "host" || (device == "auto" && !have_cuda())) return make_host_trainer(options);
  if (device == "auto") return make_cuda_trainer(0, options);
  int ordinal = 0;
  const char* const end = device.data() + device.size();
  const auto parsed = device.starts_with("cuda:") ? std::from_chars(device.data() + 5, end, ordinal)
                                                  : std::from_chars_result{};
  if (parsed.ptr != end || parsed.ec != std::errc() || ordinal < 0)
    throw std::invalid_argument("--device is \"" + device +
                                "\"; it can be auto, host, cuda:0, cuda:1 ...");
  return make_cuda_trainer(ordinal, options);
}

/// The tensors of a batch, or of part `part` of it, for the trainer.
template <typename BatchOrPart>
Samples samples_of(const BatchOrPart& samples, const millrace::Batch& batch, std::size_t part,
                   const Options& options) {
  return {.images = samples.images(),
          .labels = samples.labels(),
          .valid = samples["valid"],
          .slot = batch.slot(),
          .part = part,
          .full_batch = batch.size() == options.batch_size};
}

void train(const Options& options) {
  const auto dataset = millrace::open_dataset(options.dataset);
  if (dataset->classes().empty())
    throw std::invalid_argument(options.dataset + " has no classes to tell apart");
  const auto held_out = [&](std::uint64_t index) {
    return millrace::Random(3, index).uniform() < options.holdout;  // the same records in every run
  };
  const auto trained_on = [&](std::uint64_t index) { return !held_out(index); };

  // Made before the pipelines: their batches use its stream, so it must outlive them.
  const auto trainer = make_trainer(options.device, {.pixels = thumbnail * thumbnail * 3,
                                                     .classes = dataset->classes().size(),
                                                     .batch_size = options.batch_size});
  const auto runtime = millrace::make_runtime();
  // Values from -1 to 1, computed on the device; the copied values are uint8.
  const millrace::Conversion conversion{.layout = millrace::ImageLayout::nhwc,
                                        .mean = {0.5F, 0.5F, 0.5F, 0},
                                        .std = {0.5F, 0.5F, 0.5F, 1}};
  millrace::Recipe recipe = millrace::Recipe::train(thumbnail);
  recipe.ops.front() = millrace::RandomResizedCrop{.scale = {0.7, 1.0}};
  millrace::Pipeline training(
      dataset, millrace::image_transform(recipe), trainer->device(),
      {.batch_size = options.batch_size,
       .seed = 7,
       .order = millrace::Order::shuffled().filtered(dataset->size(), trained_on),
       .epochs = options.epochs,
       .conversion = conversion,
       .runtime = runtime,
       .slots = {.micro_batches = options.accumulate}});
  millrace::Pipeline evaluation(
      dataset, millrace::image_transform(millrace::Recipe::eval(thumbnail)), trainer->device(),
      {.batch_size = options.batch_size,
       .order = millrace::Order::sequential().filtered(dataset->size(), held_out),
       .epochs = options.epochs,
       .conversion = conversion,
       .runtime = runtime});
  std::printf("on %s\n", trainer->device()->name().c_str());
  for (std::uint64_t epoch = 0; epoch < options.epochs; ++epoch) {
    const double rate =
        0.01 * (1 - static_cast<double>(epoch) / static_cast<double>(options.epochs));
    bool last = false;
    while (!last) {
      const millrace::Batch batch = training.next_in_micro_batches(trainer->stream());
      last = batch.last_in_epoch();
      for (const millrace::MicroBatch& part : batch.micro_batches())
        trainer->train(samples_of(part, batch, part.number(), options));
      trainer->step(batch.valid_count(), static_cast<float>(rate));
    }
    const Perceptron::Sums trained = trainer->synchronize();
    for (last = false; !last;) {
      const millrace::Batch batch = evaluation.next(trainer->stream());
      last = batch.last_in_epoch();
      trainer->look(samples_of(batch, batch, 0, options));
    }
    const Perceptron::Sums evaluated = trainer->synchronize();
    std::printf("epoch %llu: loss %.3f, training accuracy %.1f%%, held out %.1f%%\n",
                static_cast<unsigned long long>(epoch), trained.loss / trained.samples,
                100 * trained.right / trained.samples, 100 * evaluated.right / evaluated.samples);
  }
  const double idle = trainer->idle();
  std::printf("idle %.1f%%; %s\n", 100 * idle,
              millrace::judge(training.report(), idle).text.c_str());
}

}  // namespace

int main(int argc, char** argv) try {
  train(parse(argc, argv));
} catch (const std::exception& error) {
  std::cerr << "train: " << error.what() << '\n';
  return 1;
}
