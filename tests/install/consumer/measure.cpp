// SPDX-License-Identifier: Apache-2.0
//
// Measures a trainer of numbers, and saves the options that the tuner finds for it.
#include <millrace/host_device.h>
#include <millrace/measure.h>

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <span>
#include <string>

namespace {

class Numbers final : public millrace::Dataset {
 public:
  std::uint64_t size() const override { return 1000; }
  std::string name() const override { return "numbers"; }
  std::unique_ptr<millrace::DatasetReader> make_reader() const override {
    return std::make_unique<Reader>();
  }

 private:
  class Reader final : public millrace::DatasetReader {
    millrace::Record read(std::uint64_t index) override {
      number_ = static_cast<std::int64_t>(index);
      field_ = {.name = "number", .bytes = std::as_bytes(std::span(&number_, 1))};
      return {index, std::span(&field_, 1)};
    }
    std::int64_t number_ = 0;
    millrace::RecordField field_;
  };
};

class Same final : public millrace::Transform {
 public:
  const millrace::SampleSpec& spec() const override { return spec_; }
  std::unique_ptr<millrace::TransformWorker> make_worker() const override {
    return std::make_unique<Worker>();
  }

 private:
  class Worker final : public millrace::TransformWorker {
    millrace::Status make(const millrace::Record& record, millrace::Random&,
                          millrace::Sample& sample) override {
      sample["number"].as<std::int64_t>()[0] = record.integer("number");
      return millrace::Status::ok();
    }
  };
  millrace::SampleSpec spec_{{{.name = "number", .dtype = millrace::DType::int64, .shape = {}}}};
};

}  // namespace

int main() {
  std::int64_t sum = 0;
  const millrace::measure::Workload trainer{
      .dataset = std::make_shared<Numbers>(),
      .transform = std::make_shared<Same>(),
      .device = std::make_shared<millrace::HostDevice>(),
      .step =
          [&](const millrace::Batch& batch, millrace::Stream&) {
            for (const std::int64_t number : batch["number"].as<std::int64_t>()) sum += number;
          },
      .pipeline = {.batch_size = 50}};
  const auto measured = millrace::measure::bench(trainer, {.warmup = 2, .batches = 20});
  const auto tuned = millrace::measure::tune(
      trainer, {.max_workers = 1, .budget = std::chrono::milliseconds(300)});
  millrace::save_options("tuned.json", tuned.options);
  std::cout << measured.text << tuned.text;
  return measured.report.samples == 1000 && sum > 0 &&
                 millrace::load_options("tuned.json").workers == 1
             ? 0
             : 1;
}
