// SPDX-License-Identifier: Apache-2.0
//
//   tune_my_trainer DATASET [--out FILE] [--device cpu|cuda|cuda:N] [--batch-size N]
//                   [--size PIXELS] [--max-workers N] [--seconds S]
//
// Finds the number of workers and the prefetch that the step of resnet18 needs on this machine, and
// saves them in FILE (tuned.json), which resnet18 reads with --options. It measures the trainer's
// own step, on this dataset and this device.

#include <millrace/image_transform.h>
#include <millrace/measure.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <string>

#include "arguments.h"
#include "resnet18_step.h"

namespace {

struct Options {
  std::string dataset{};
  std::string out = "tuned.json";
  std::string device = "cpu";
  std::uint64_t batch_size = 32;
  std::uint64_t size = 224;
  std::uint64_t max_workers = 0;
  double seconds = 100;
};

Options parse(int argc, char** argv) {
  Arguments arguments(argc, argv);
  Options options{.dataset = arguments.dataset()};
  arguments.take("--out", options.out);
  arguments.take("--device", options.device);
  arguments.take("--batch-size", options.batch_size);
  arguments.take("--size", options.size);
  arguments.take("--max-workers", options.max_workers);
  arguments.take("--seconds", options.seconds);
  arguments.finish();
  if (options.size < 32 || options.size > 4096)
    throw std::invalid_argument("--size must be from 32 to 4096");
  if (!(options.seconds > 0)) throw std::invalid_argument("--seconds must be above 0");
  return options;
}

void tune(const Options& options) {
  const torch::Device device(options.device);
  const auto dataset = millrace::open_dataset(options.dataset);
  if (dataset->classes().empty())
    throw std::invalid_argument(options.dataset + " has no classes to tell apart");
  torch::manual_seed(7);
  ResNet18 model = make_model(dataset->classes().size(), device);
  torch::optim::SGD optimiser = make_optimiser(model, 0.001);

  millrace::measure::Workload trainer{
      .dataset = dataset,
      .transform =
          millrace::image_transform(millrace::Recipe::train(static_cast<int>(options.size))),
      .device = loading_device(device),
      .stream = millrace::TorchStream(device).stream(),
      .step = [&](const millrace::Batch& batch,
                  millrace::Stream&) { train_step(model, optimiser, Tensors(batch), device); },
      .pipeline = loading_options(device)};
  trainer.pipeline.batch_size = options.batch_size;
  const auto tuned =
      millrace::measure::tune(trainer, {.max_workers = static_cast<unsigned>(options.max_workers),
                                        .budget = std::chrono::duration<double>(options.seconds)});
  std::printf("%s", tuned.text.c_str());
  millrace::save_options(options.out, tuned.options);
}

}  // namespace

int main(int argc, char** argv) try { tune(parse(argc, argv)); } catch (const c10::Error& error) {
  std::cerr << "tune_my_trainer: " << error.what_without_backtrace() << '\n';
  return 1;
} catch (const std::exception& error) {
  std::cerr << "tune_my_trainer: " << error.what() << '\n';
  return 1;
}
