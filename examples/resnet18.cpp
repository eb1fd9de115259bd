// SPDX-License-Identifier: Apache-2.0
//
//   resnet18 DATASET [--evaluate DATASET] [--device cpu|cuda|cuda:N] [--epochs N] [--batch-size N]
//            [--size PIXELS] [--rate R] [--checkpoint FILE] [--stop-after BATCHES]
//
// Trains ResNet-18 with LibTorch, whose tensors lie over millrace's batches. Where FILE exists the
// run goes on from it, after the very batch that it was written behind: model, optimiser and the
// pipeline's state are in it. It is written after each epoch, and where --stop-after ends the run.
// On CUDA the loader's kernel makes float32 of the images, and the model computes in bfloat16 where
// autocast says so.

#include <ATen/autocast_mode.h>
#include <millrace/host_device.h>
#include <millrace/image_transform.h>
#include <millrace/torch.h>
#include <torch/torch.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <limits>
#include <stdexcept>
#include <string>

#include "arguments.h"
#include "resnet18_model.h"

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
  std::uint64_t stop_after = std::numeric_limits<std::uint64_t>::max();
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
  arguments.finish();
  if (options.size < 32 || options.size > 4096)
    throw std::invalid_argument("--size must be from 32 to 4096");
  return options;
}

/// bfloat16 on a GPU while it lives, where PyTorch thinks that right.
class Autocast {
 public:
  explicit Autocast(const torch::Device& device) : on_(device.is_cuda()) { set(on_); }
  ~Autocast() { set(false); }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  void set(bool enabled) const {
    if (!on_) return;
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
    at::autocast::set_autocast_dtype(at::kCUDA, at::kBFloat16);
    at::autocast::set_autocast_enabled(at::kCUDA, enabled);
#else
    at::autocast::set_autocast_gpu_dtype(at::kBFloat16);
    at::autocast::set_enabled(enabled);
#endif
    if (!enabled) at::autocast::clear_cache();
  }
  const bool on_;
};

std::shared_ptr<millrace::Device> loading_device(const torch::Device& device) {
#ifdef MILLRACE_TORCH_CUDA
  if (device.is_cuda())
    return std::make_shared<millrace::CudaDevice>(device.has_index() ? device.index() : 0);
#endif
  if (!device.is_cpu())
    throw std::invalid_argument("batches for --device " + device.str() +
                                " need millrace and LibTorch built for it");
  return std::make_shared<millrace::HostDevice>();
}

/// A batch as tensors, over its own memory, but for the images on the CPU, which become float32.
struct Tensors {
  explicit Tensors(const millrace::Batch& batch)
      : images(millrace::to_torch_channels_last(batch["image"])),
        labels(millrace::to_torch(batch["label"])) {
    if (images.scalar_type() == torch::kFloat) return;
    static const auto mean = torch::tensor({0.485F, 0.456F, 0.406F}).view({1, 3, 1, 1});
    static const auto std = torch::tensor({0.229F, 0.224F, 0.225F}).view({1, 3, 1, 1});
    images = images.to(torch::kFloat).div_(255).sub_(mean).div_(std);
  }
  torch::Tensor images;
  torch::Tensor labels;
};

/// Sums over an epoch, on the model's device: to look at them waits for it.
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
  std::filesystem::rename(path + ".new", path);  // a run that is killed leaves the one before
}

std::optional<millrace::State> load(const std::string& path, ResNet18& model,
                                    torch::optim::SGD& optimiser, const torch::Device& device) {
  if (path.empty() || !std::filesystem::exists(path)) return std::nullopt;
  torch::serialize::InputArchive archive, of_model, of_optimiser;
  try {
    archive.load_from(path, device);
  } catch (const c10::Error& error) {
    throw std::runtime_error(path + " is no checkpoint: " + error.what_without_backtrace());
  }
  archive.read("model", of_model);
  archive.read("optimiser", of_optimiser);
  model->load(of_model);
  optimiser.load(of_optimiser);
  c10::IValue state;
  archive.read("state", state);
  return millrace::State::from_json(state.toStringRef(), path);
}

void train(const Options& options) {
  const torch::Device device(options.device);
  const auto where = loading_device(device);
  const auto dataset = millrace::open_dataset(options.dataset);
  if (dataset->classes().empty())
    throw std::invalid_argument(options.dataset + " has no classes to tell apart");

  torch::manual_seed(7);
  ResNet18 model(static_cast<std::int64_t>(dataset->classes().size()));
  model->to(device);
  for (torch::Tensor& weight : model->parameters())
    if (weight.dim() == 4) weight.set_data(weight.contiguous(torch::MemoryFormat::ChannelsLast));
  torch::optim::SGD optimiser(
      model->parameters(), torch::optim::SGDOptions(options.rate).momentum(0.9).weight_decay(1e-4));

  millrace::PipelineOptions loading{.batch_size = options.batch_size,
                                    .seed = 7,
                                    .epochs = options.epochs,
                                    .last_batch = millrace::LastBatch::drop,
                                    .runtime = millrace::make_runtime()};
  if (device.is_cuda())
    loading.conversion = millrace::Conversion{.layout = millrace::ImageLayout::nhwc,
                                              .mean = millrace::Conversion::imagenet_mean,
                                              .std = millrace::Conversion::imagenet_std};
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
    optimiser.zero_grad();
    torch::Tensor loss;
    {
      const Autocast autocast(device);
      const torch::Tensor output = model(tensors.images);
      loss = torch::cross_entropy_loss(output, tensors.labels);
      sums.add(loss, output, tensors.labels);
    }
    loss.backward();
    optimiser.step();
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

int main(int argc, char** argv) try { train(parse(argc, argv)); } catch (const c10::Error& error) {
  std::cerr << "resnet18: " << error.what_without_backtrace() << '\n';
  return 1;
} catch (const std::exception& error) {
  std::cerr << "resnet18: " << error.what() << '\n';
  return 1;
}
