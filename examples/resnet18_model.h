// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include <cstdint>

/// Two 3 x 3 convolutions with a shortcut.
struct BasicBlockImpl : torch::nn::Module {
  BasicBlockImpl(std::int64_t in, std::int64_t out, std::int64_t stride)
      : first(convolution(in, out, 3, stride)),
        first_norm(out),
        second(convolution(out, out, 3, 1)),
        second_norm(out) {
    register_module("first", first);
    register_module("first_norm", first_norm);
    register_module("second", second);
    register_module("second_norm", second_norm);
    if (stride != 1 || in != out) {
      shortcut->push_back(convolution(in, out, 1, stride));
      shortcut->push_back(torch::nn::BatchNorm2d(out));
    }
    register_module("shortcut", shortcut);
  }

  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor inner = torch::relu(first_norm(first(x)));
    return torch::relu(second_norm(second(inner)) +
                       (shortcut->is_empty() ? x : shortcut->forward(x)));
  }

  static torch::nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t size,
                                       std::int64_t stride) {
    return torch::nn::Conv2d(
        torch::nn::Conv2dOptions(in, out, size).stride(stride).padding(size / 2).bias(false));
  }

  torch::nn::Conv2d first;
  torch::nn::BatchNorm2d first_norm;
  torch::nn::Conv2d second;
  torch::nn::BatchNorm2d second_norm;
  torch::nn::Sequential shortcut;
};
TORCH_MODULE(BasicBlock);

/// ResNet-18 (He et al., 2015), with torchvision's layers: [samples, 3, height, width] to
/// [samples, classes].
struct ResNet18Impl : torch::nn::Module {
  explicit ResNet18Impl(std::int64_t classes) {
    using Pool = torch::nn::MaxPool2dOptions;
    layers->push_back(BasicBlockImpl::convolution(3, 64, 7, 2));
    layers->push_back(torch::nn::BatchNorm2d(64));
    layers->push_back(torch::nn::ReLU());
    layers->push_back(torch::nn::MaxPool2d(Pool(3).stride(2).padding(1)));
    std::int64_t in = 64;
    for (const std::int64_t out : {64, 128, 256, 512}) {
      layers->push_back(BasicBlock(in, out, out == in ? 1 : 2));
      layers->push_back(BasicBlock(out, out, 1));
      in = out;
    }
    layers->push_back(torch::nn::AdaptiveAvgPool2d(1));
    layers->push_back(torch::nn::Flatten());
    layers->push_back(torch::nn::Linear(in, classes));
    register_module("layers", layers);
  }

  torch::Tensor forward(const torch::Tensor& images) { return layers->forward(images); }

  torch::nn::Sequential layers;
};
TORCH_MODULE(ResNet18);
