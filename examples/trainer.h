// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/device.h>
#include <millrace/tensor.h>

#include <cstddef>
#include <memory>

#include "perceptron.h"

/// Samples for a trainer: those of a batch, or of a part of one. All are in memory of the trainer's
/// device.
struct Samples {
  millrace::Tensor images;  ///< float32, [samples, height, width, channels]
  millrace::Tensor labels;  ///< int64, [samples]
  millrace::Tensor valid;   ///< uint8, [samples]
  /// The batch's slot, whose addresses never change, and the number of the part in the batch.
  std::size_t slot = 0;
  std::size_t part = 0;
  /// False for the last batch of an epoch if it is shorter.
  bool full_batch = true;

  std::size_t size() const { return labels.shape.elements(); }
};

struct TrainerOptions {
  std::size_t pixels = 0;
  std::size_t hidden = 64;
  std::size_t classes = 0;
  /// Maximal number of samples at once.
  std::size_t batch_size = 0;
};

/// A perceptron that trains on a device, and the stream that it uses. `train`, `look` and `step`
/// enqueue work on the stream and return. `synchronize` returns their sums. For one thread.
class Trainer {
 public:
  virtual ~Trainer() = default;
  /// Device that the pipelines copy their batches to.
  virtual std::shared_ptr<millrace::Device> device() const = 0;
  virtual millrace::Stream& stream() = 0;
  /// Adds the samples' gradients to those of the batch, whose first part is `part` 0.
  virtual void train(const Samples& samples) = 0;
  /// Makes a step along the gradients of the batch's parts / `samples`, with learning rate `rate`.
  virtual void step(std::size_t samples, float rate) = 0;
  /// Computes only the samples' loss and accuracy.
  virtual void look(const Samples& samples) = 0;
  /// Waits for the stream, and returns the sums since the last call.
  virtual Perceptron::Sums synchronize() = 0;
  /// Share of the time from the first step to the last in which the stream had no step to run. Call
  /// it after `synchronize`.
  virtual double idle() = 0;
};

std::unique_ptr<Trainer> make_host_trainer(const TrainerOptions& options);
/// Throws `millrace::Error` ("no CUDA device ...") without a CUDA device, or if the example was
/// built without CUDA: CMake then uses no_cuda_trainer.cpp in place of cuda_trainer.cpp.
std::unique_ptr<Trainer> make_cuda_trainer(int ordinal, const TrainerOptions& options);
/// Whether `make_cuda_trainer(0, ...)` has a device.
bool have_cuda();
