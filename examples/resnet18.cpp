// SPDX-License-Identifier: Apache-2.0
//
//   resnet18 DATASET [--evaluate DATASET] [--device cpu|cuda|cuda:N] [--epochs N] [--batch-size N]
//            [--size PIXELS] [--rate R] [--checkpoint FILE] [--stop-after BATCHES] [--options FILE]
//            [--repeat N]
//   resnet18 DATASET --measure SECONDS [--feed millrace|synthetic|both] [--warm-up SECONDS]
//            [--json FILE] [--device D] [--batch-size N] [--size PIXELS] [--repeat N]
//
// Trains ResNet-18 with LibTorch, whose tensors use the memory of millrace's batches.
//
// If the checkpoint FILE exists, the run continues from it, after exactly the batch at which it was
// written. It contains the model, the optimiser and the pipeline's state. It is written after each
// epoch, and where --stop-after ends the run. --options reads the workers, batch size and prefetch
// that tune_my_trainer saved. With --repeat N an epoch has each record N times. On CUDA the
// loader's kernel converts the images to bfloat16, and the model computes in bfloat16 where
// autocast uses it.
//
// --measure trains for so many seconds after a warm-up. It prints images per second, and on CUDA
// the share of time in which the stream had no step to run ("idle"). `synthetic` repeats 8 batches
// of the dataset that stay on the device: the maximal rate for any loader. `both` measures
// synthetic, millrace and synthetic again, with one model. --json appends a line for each to FILE.

#include <millrace/image_transform.h>
#include <millrace/options_file.h>
#include <millrace/torch.h>
#include <torch/torch.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "resnet18_measure.h"
#include "resnet18_step.h"

namespace {

struct Options {
  std::string dataset{};
  std::string evaluate{};
  std::string device = "cpu";
  std::uint64_t epochs = 10;
  std::size_t batch_size = 32;
  std::uint64_t size = 224;
  double rate = 0.01;
  std::string checkpoint{};
  std::string tuned{};
  std::uint64_t stop_after = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t repeat = 1;
  MeasureOptions measure{.seconds = 0};  ///< 0 seconds: train
  std::string feed = "both";
};

Options parse(int argc, char** argv) {
  Arguments arguments(argc, argv);
  Options options{.dataset = arguments.dataset()};
  arguments.take("--evaluate", options.evaluate);
  arguments.take("--device", options.device);
  arguments.take("--epochs", options.epochs);
  arguments.take("--batch-size", options.batch_size);
  arguments.take("--size", options.size);
  arguments.take("--rate", options.rate);
  arguments.take("--checkpoint", options.checkpoint);
  arguments.take("--stop-after", options.stop_after);
  arguments.take("--options", options.tuned);
  arguments.take("--repeat", options.repeat);
  arguments.take("--measure", options.measure.seconds);
  arguments.take("--warm-up", options.measure.warm_up);
  arguments.take("--json", options.measure.json);
  arguments.take("--feed", options.feed);
  arguments.finish();
  if (options.size < 32 || options.size > 4096)
    throw std::invalid_argument("--size must be from 32 to 4096");
  if (options.repeat < 1 || options.repeat > 1'000'000)
    throw std::invalid_argument("--repeat must be from 1 to 1000000");
  constexpr double day = 86400;
  for (const double seconds : {options.measure.seconds, options.measure.warm_up})
    if (!(seconds >= 0 && seconds <= day))
      throw std::invalid_argument("--measure and --warm-up must be from 0 to 86400 seconds");
  if (options.feed != "millrace" && options.feed != "synthetic" && options.feed != "both")
    throw std::invalid_argument("--feed is \"" + options.feed +
                                "\"; it can be millrace, synthetic or both");
  return options;
}

/// Sums over an epoch, on the model's device. Reading them waits for the device.
struct Sums {
  explicit Sums(const torch::Device& device)
      : loss(torch::zeros({}, device)), right(torch::zeros({}, device)) {}
  void add(const torch::Tensor& mean_loss, const torch::Tensor& output,
           const torch::Tensor& labels) {
    const std::int64_t count = labels.size(0);
    loss += mean_loss.detach() * count;
    right += (output.detach().argmax(1) == labels).sum();
    samples += count;
  }
  double mean_loss() const { return loss.item<double>() / static_cast<double>(samples); }
  double percent() const { return 100 * right.item<double>() / static_cast<double>(samples); }

  torch::Tensor loss, right;
  std::int64_t samples = 0;
};

void save(const std::string& path, ResNet18& model, const torch::optim::SGD& optimiser,
          const millrace::State& state) {
  if (path.empty()) return;
  torch::serialize::OutputArchive archive, of_model, of_optimiser;
  model->save(of_model);
  optimiser.save(of_optimiser);
  archive.write("model", of_model);
  archive.write("optimiser", of_optimiser);
  archive.write("state", c10::IValue(state.to_json()));
  archive.save_to(path + ".new");
  std::filesystem::rename(path + ".new", path);  // a killed run keeps the previous file
}

std::optional<millrace::State> load(const std::string& path, ResNet18& model,
                                    torch::optim::SGD& optimiser, const torch::Device& device) {
  if (path.empty() || !std::filesystem::exists(path)) return std::nullopt;
  torch::serialize::InputArchive archive, of_model, of_optimiser;
  try {
    archive.load_from(path, device);
  } catch (const c10::Error& error) {
    throw std::runtime_error(path + " is not a checkpoint: " + error.what_without_backtrace());
  }
  archive.read("model", of_model);
  archive.read("optimiser", of_optimiser);
  model->load(of_model);
  optimiser.load(of_optimiser);
  c10::IValue state;
  archive.read("state", state);
  return millrace::State::from_json(state.toStringRef(), path);
}

std::shared_ptr<const millrace::Dataset> open(const Options& options) {
  auto dataset = millrace::open_dataset(options.dataset);
  if (dataset->classes().empty())
    throw std::invalid_argument(options.dataset + " has no classes to tell apart");
  return dataset;
}

/// Returns a shuffled order with each record `times` times in an epoch.
millrace::Order repeated(const millrace::Dataset& dataset, std::uint64_t times) {
  if (times == 1) return millrace::Order::shuffled();
  std::vector<std::uint64_t> records(dataset.size() * times);
  for (std::size_t place = 0; place < records.size(); ++place)
    records[place] = place % dataset.size();
  return millrace::Order::shuffled().subset(std::move(records));
}

millrace::PipelineOptions loading_options(const Options& options, const millrace::Dataset& dataset,
                                          const torch::Device& device) {
  millrace::PipelineOptions loading = ::loading_options(device);
  loading.batch_size = options.batch_size;
  loading.order = repeated(dataset, options.repeat);
  return loading;
}

/// Number of batches that stay on the device for the synthetic feed.
constexpr std::size_t kept_batches = 8;

void measure(const Options& options) {
  const torch::Device device(options.device);
  const auto where = loading_device(device);
  const auto dataset = open(options);

  torch::manual_seed(7);
  ResNet18 model = make_model(dataset->classes().size(), device);
  torch::optim::SGD optimiser = make_optimiser(model, options.rate);
  const auto step = [&](const Tensors& tensors) {
    return train_step(model, optimiser, tensors, device).loss;
  };
  const auto tell_rate = [&](const Rate& rate) {
    print_rate(rate, options.measure, to_json(rate, device, options.batch_size, options.size));
  };
  const millrace::TorchStream stream(device);
  const auto make_pipeline = [&] {
    millrace::PipelineOptions loading = loading_options(options, *dataset, device);
    loading.runtime = millrace::make_runtime();
    return millrace::Pipeline(
        dataset, millrace::image_transform(millrace::Recipe::train(static_cast<int>(options.size))),
        where, loading);
  };
  const auto measure_synthetic = [&](const MeasureOptions& settings) {
    std::vector<Tensors> kept;
    {
      millrace::Pipeline pipeline = make_pipeline();
      while (kept.size() < kept_batches) {
        const Tensors tensors(stream.next(pipeline));
        kept.emplace_back(tensors.images.clone(), tensors.labels.clone());
      }
    }
    std::size_t number = 0;
    Rate rate = measure_steps(
        device, settings, [&] { return kept[number++ % kept.size()]; }, step, [] {});
    rate.feed = "synthetic";
    tell_rate(rate);
  };
  const auto measure_millrace = [&] {
    millrace::Pipeline pipeline = make_pipeline();
    Rate rate = measure_steps(
        device, options.measure, [&] { return Tensors(stream.next(pipeline)); }, step,
        [&] { pipeline.restart_report(); });
    rate.feed = "millrace";
    rate.report = pipeline.report();
    tell_rate(rate);
  };

  if (options.feed != "millrace") measure_synthetic(options.measure);
  if (options.feed != "synthetic") measure_millrace();
  MeasureOptions again = options.measure;
  again.warm_up = 0;  // 10 steps are enough now
  if (options.feed == "both") measure_synthetic(again);
}

void train(const Options& options) {
  const torch::Device device(options.device);
  const auto where = loading_device(device);
  const auto dataset = open(options);

  torch::manual_seed(7);
  ResNet18 model = make_model(dataset->classes().size(), device);
  torch::optim::SGD optimiser = make_optimiser(model, options.rate);

  millrace::PipelineOptions loading = loading_options(options, *dataset, device);
  unsigned workers = 0;
  if (!options.tuned.empty()) {
    const millrace::LoadedOptions tuned = millrace::load_options(options.tuned);
    for (const std::string& difference : tuned.machine_differences)
      std::fprintf(stderr, "%s: tuned on another machine: %s\n", options.tuned.c_str(),
                   difference.c_str());
    loading.batch_size = tuned.pipeline.batch_size;
    loading.slots = tuned.pipeline.slots;
    workers = tuned.workers;
    std::printf("%u workers, prefetch %zu, batches of %zu\n", workers, loading.slots.prefetch,
                loading.batch_size);
  }
  loading.epochs = options.epochs;
  loading.runtime = millrace::make_runtime({.workers = workers});
  loading.resume.from = load(options.checkpoint, model, optimiser, device);
  const int size = static_cast<int>(options.size);
  const millrace::TorchStream stream(device);
  millrace::Pipeline training(dataset, millrace::image_transform(millrace::Recipe::train(size)),
                              where, loading);

  const auto evaluated_on =
      options.evaluate.empty() ? nullptr : millrace::open_dataset(options.evaluate);
  const auto evaluate = [&] {
    millrace::PipelineOptions once = loading;
    once.order = millrace::Order::sequential();
    once.epochs = 1;
    once.last_batch = millrace::LastBatch::partial;
    once.resume = {};
    millrace::Pipeline evaluation(
        evaluated_on, millrace::image_transform(millrace::Recipe::eval(size)), where, once);
    const torch::NoGradGuard no_gradients;
    const Autocast autocast(device);
    model->eval();
    Sums sums(device);
    while (const millrace::Batch batch = stream.next(evaluation)) {
      const Tensors tensors(batch);
      const torch::Tensor output = model(tensors.images);
      sums.add(torch::cross_entropy_loss(output, tensors.labels), output, tensors.labels);
    }
    model->train();
    return sums.percent();
  };

  Sums sums(device);
  while (const millrace::Batch batch = stream.next(training)) {
    const Tensors tensors(batch);
    const auto [loss, output] = train_step(model, optimiser, tensors, device);
    sums.add(loss, output, tensors.labels);
    if (batch.last_in_epoch()) {
      std::printf("epoch %llu: loss %.4f, training accuracy %.1f%%",
                  static_cast<unsigned long long>(batch.epoch()), sums.mean_loss(), sums.percent());
      if (!options.evaluate.empty()) std::printf(", evaluation %.1f%%", evaluate());
      std::printf("\n");
      std::fflush(stdout);
      sums = Sums(device);
    }
    const bool stop = batch.number() + 1 >= options.stop_after;
    if (stop || batch.last_in_epoch())
      save(options.checkpoint, model, optimiser, batch.state_after());
    if (stop) break;
  }
  std::printf("%s\n", training.report().verdict.text.c_str());
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = parse(argc, argv);
  if (options.measure.seconds > 0)
    measure(options);
  else
    train(options);
} catch (const c10::Error& error) {
  std::cerr << "resnet18: " << error.what_without_backtrace() << '\n';
  return 1;
} catch (const std::exception& error) {
  std::cerr << "resnet18: " << error.what() << '\n';
  return 1;
}
