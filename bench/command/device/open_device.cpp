// SPDX-License-Identifier: Apache-2.0
#include "command/device/open_device.h"

#include <millrace/error.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::cli {
namespace {

constexpr std::string_view cuda_prefix = "cuda:";
constexpr std::size_t max_digits = 4;

/// A stream of the host device. Its substitute for a training step waits without using a core
/// (`HostStream::step`).
class HostTrainerStream final : public TrainerStream {
 public:
  HostTrainerStream(HostDevice& device, const StepWork& work) : TrainerStream(work) {
    for (Marks& marks : marks_) marks = {device.make_event(), device.make_event()};
  }

  Stream& stream() override { return stream_; }
  StepStatistics statistics() const override { return stream_.steps(); }
  void restart_statistics() override { stream_.reset_steps(); }
  void read(const Batch& batch, std::span<const std::string> names, Reader reader) override {
    std::vector<Tensor> fields;
    for (const std::string& name : names) fields.push_back(batch[name]);
    stream_.launch([fields = std::move(fields), reader = std::move(reader)] { reader(fields); });
  }

 private:
  struct Marks {
    std::unique_ptr<Event> begin;
    std::unique_ptr<Event> end;
  };

  void enqueue(std::size_t number, const Batch&, double share) override {
    const Marks& marks = marks_[number % marks_.size()];
    stream_.record(*marks.begin);
    if (work().any())
      stream_.step(std::chrono::duration_cast<std::chrono::nanoseconds>(
          share * std::chrono::duration<double>(work().duration)));
    stream_.record(*marks.end);
  }

  std::optional<StepSpan> finish(std::size_t number) override {
    const Marks& marks = marks_[number % marks_.size()];
    marks.end->wait(std::chrono::hours(1));
    return StepSpan{*marks.begin->passed_at(), *marks.end->passed_at()};
  }

  std::array<Marks, max_queued> marks_;
  HostStream stream_;
};

class HostBenchDevice final : public BenchDevice {
 public:
  explicit HostBenchDevice(double copy_bytes_per_second)
      : device_(std::make_shared<HostDevice>(
            HostDeviceOptions{.copies = true, .copy_bytes_per_second = copy_bytes_per_second})) {}

  std::shared_ptr<Device> device() const override { return device_; }
  std::unique_ptr<TrainerStream> make_trainer_stream(const StepWork& work) const override {
    if (work.gemm > 0)
      throw Error(ErrorCode::invalid_argument, "a step of matrices needs a CUDA device");
    return std::make_unique<HostTrainerStream>(*device_, work);
  }

 private:
  std::shared_ptr<HostDevice> device_;
};

}  // namespace

bool is_bench_device(const std::string& name) {
  if (name == "host") return true;
  if (!name.starts_with(cuda_prefix)) return false;
  const std::string_view digits = std::string_view(name).substr(cuda_prefix.size());
  return !digits.empty() && digits.size() <= max_digits &&
         std::ranges::all_of(digits,
                             [](unsigned char letter) { return std::isdigit(letter) != 0; });
}

std::shared_ptr<const BenchDevice> open_bench_device(const std::string& name,
                                                     double copy_bytes_per_second) {
  if (!is_bench_device(name))
    throw Error(ErrorCode::invalid_argument,
                "there is no device " + name + "; give host or cuda:N");
  if (name == "host") return std::make_shared<HostBenchDevice>(copy_bytes_per_second);
  return open_cuda_bench_device(std::stoi(name.substr(cuda_prefix.size())));
}

}  // namespace millrace::cli
