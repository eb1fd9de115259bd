// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/autocast_mode.h>
#include <millrace/host_device.h>
#include <millrace/pipeline.h>
#include <millrace/torch.h>
#include <torch/torch.h>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <utility>

#include "resnet18_model.h"
#ifdef MILLRACE_TORCH_CUDA
#include <c10/cuda/CUDAFunctions.h>
#endif

// The training step on a batch, and the loading of batches: for resnet18 and tune_my_trainer.

/// Enables bfloat16 on a GPU while it lives, for the operations that PyTorch selects.
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

/// Returns the device that batches are loaded to. A GPU also becomes the calling thread's current
/// device, also for PyTorch.
inline std::shared_ptr<millrace::Device> loading_device(const torch::Device& device) {
#ifdef MILLRACE_TORCH_CUDA
  if (device.is_cuda()) {
    const int ordinal = device.has_index() ? device.index() : 0;
    auto loading = std::make_shared<millrace::CudaDevice>(ordinal);
    c10::cuda::set_device(static_cast<c10::DeviceIndex>(ordinal));
    return loading;
  }
#endif
  if (!device.is_cpu())
    throw std::invalid_argument("batches for --device " + device.str() +
                                " need millrace and LibTorch built for it");
  return std::make_shared<millrace::HostDevice>();
}

/// A batch as tensors over its own memory. On the CPU the images are copied to float32.
struct Tensors {
  explicit Tensors(const millrace::Batch& batch)
      : images(millrace::to_torch_channels_last(batch["image"])),
        labels(millrace::to_torch(batch["label"])) {
    if (images.scalar_type() != torch::kByte) return;
    static const auto mean = torch::tensor({0.485F, 0.456F, 0.406F}).view({1, 3, 1, 1});
    static const auto std = torch::tensor({0.229F, 0.224F, 0.225F}).view({1, 3, 1, 1});
    images = images.to(torch::kFloat).div_(255).sub_(mean).div_(std);
  }
  Tensors(torch::Tensor images, torch::Tensor labels)
      : images(std::move(images)), labels(std::move(labels)) {}

  torch::Tensor images;
  torch::Tensor labels;
};

inline ResNet18 make_model(std::size_t classes, const torch::Device& device) {
  if (device.is_cuda()) at::globalContext().setBenchmarkCuDNN(true);  // shapes do not change
  ResNet18 model(static_cast<std::int64_t>(classes));
  model->to(device);
  for (torch::Tensor& weight : model->parameters())
    if (weight.dim() == 4) weight.set_data(weight.contiguous(torch::MemoryFormat::ChannelsLast));
  return model;
}

inline torch::optim::SGD make_optimiser(ResNet18& model, double rate) {
  return torch::optim::SGD(model->parameters(),
                           torch::optim::SGDOptions(rate).momentum(0.9).weight_decay(1e-4));
}

inline millrace::PipelineOptions loading_options(const torch::Device& device) {
  millrace::PipelineOptions options{.seed = 7, .last_batch = millrace::LastBatch::drop};
  if (device.is_cuda())
    options.conversion = millrace::Conversion{.dtype = millrace::DType::bfloat16,
                                              .layout = millrace::ImageLayout::nhwc,
                                              .mean = millrace::Conversion::imagenet_mean,
                                              .std = millrace::Conversion::imagenet_std};
  return options;
}

struct Trained {
  torch::Tensor loss, output;
};
inline Trained train_step(ResNet18& model, torch::optim::SGD& optimiser, const Tensors& tensors,
                          const torch::Device& device) {
  optimiser.zero_grad();
  Trained trained;
  {
    const Autocast autocast(device);
    trained.output = model(tensors.images);
    trained.loss = torch::cross_entropy_loss(trained.output, tensors.labels);
  }
  trained.loss.backward();
  optimiser.step();
  return trained;
}
