// SPDX-License-Identifier: Apache-2.0
#include <millrace/host_device.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "trainer.h"

namespace {

/// The trainer on the host. Its steps run on a stream, after the copies of their batches.
class HostTrainer final : public Trainer {
 public:
  explicit HostTrainer(const TrainerOptions& options)
      : model_(options.pixels, options.hidden, options.classes, 1) {}

  std::shared_ptr<millrace::Device> device() const override { return device_; }
  millrace::Stream& stream() override { return stream_; }

  void train(const Samples& samples) override {
    run([this, samples] { add(samples); });
  }

  void step(std::size_t samples, float rate) override {
    run([this, samples, rate] { model_.step(static_cast<double>(samples), rate); });
  }

  void look(const Samples& samples) override {
    run([this, samples] {
      add(samples);
      std::fill(model_.gradients().begin(), model_.gradients().end(),
                0.0F);  // they are ignored
    });
  }

  Perceptron::Sums synchronize() override {
    stream_.synchronize();
    if (error_) std::rethrow_exception(error_);
    return std::exchange(sums_, {});
  }

  double idle() override { return idle_.count() > 0 ? idle_ / (idle_ + busy_) : 0; }

 private:
  using Clock = std::chrono::steady_clock;

  void add(const Samples& samples) {
    const auto sums =
        model_.add_gradients(samples.images.as<float>(), samples.labels.as<std::int64_t>(),
                             samples.valid.as<std::uint8_t>());
    sums_.loss += sums.loss;
    sums_.right += sums.right;
    sums_.samples += sums.samples;
  }

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

  std::shared_ptr<millrace::Device> device_ =
      std::make_shared<millrace::HostDevice>(millrace::HostDeviceOptions{.copies = true});
  Perceptron model_;
  Perceptron::Sums sums_;
  std::exception_ptr error_;
  Clock::time_point last_{};
  std::chrono::duration<double> busy_{0};
  std::chrono::duration<double> idle_{0};
  millrace::HostStream stream_;  // destroyed first
};

}  // namespace

std::unique_ptr<Trainer> make_host_trainer(const TrainerOptions& options) {
  return std::make_unique<HostTrainer>(options);
}
