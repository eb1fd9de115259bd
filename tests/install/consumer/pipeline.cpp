// SPDX-License-Identifier: Apache-2.0
//
// Writes a dataset of numbers with the installed millrace and runs a pipeline over it: every number
// must come back once per epoch.

#include <millrace/dataset_writer.h>
#include <millrace/host_device.h>
#include <millrace/pipeline.h>

#include <filesystem>
#include <iostream>
#include <span>
#include <vector>

namespace {

constexpr std::int64_t record_count = 1000;

void write_numbers(const std::filesystem::path& path) {
  millrace::DatasetWriter writer(path, {.overwrite = true});
  for (std::int64_t number = 0; number < record_count; ++number) {
    const millrace::RecordField field{.name = "number",
                                      .bytes = std::as_bytes(std::span(&number, 1))};
    writer.append(std::span(&field, 1));
  }
  writer.finish();
}

/// number -> its square.
class Square final : public millrace::Transform {
 public:
  const millrace::SampleSpec& spec() const override { return spec_; }
  std::unique_ptr<millrace::TransformWorker> make_worker() const override {
    return std::make_unique<Worker>();
  }

 private:
  class Worker final : public millrace::TransformWorker {
    millrace::Status make(const millrace::Record& record, millrace::Random&,
                          millrace::Sample& sample) override {
      const std::int64_t number = record.integer("number");
      sample["square"].as<std::int64_t>()[0] = number * number;
      return millrace::Status::ok();
    }
  };

  millrace::SampleSpec spec_{{{.name = "square", .dtype = millrace::DType::int64, .shape = {}}}};
};

bool every_square_came_once(const std::filesystem::path& path) {
  auto device = std::make_shared<millrace::HostDevice>(millrace::HostDeviceOptions{.copies = true});
  millrace::Pipeline pipeline(millrace::open_dataset(path), std::make_shared<Square>(), device,
                              {.batch_size = 64, .seed = 7, .epochs = 2});
  std::vector<int> seen(record_count);
  while (auto batch = pipeline.next()) {
    const auto squares = batch["square"].as<std::int64_t>();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const std::uint64_t index = batch.indices()[i];
      if (squares[i] != static_cast<std::int64_t>(index * index)) return false;
      ++seen[index];
    }
  }
  for (const int times : seen) {
    if (times != 2) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  write_numbers(argv[1]);
  if (every_square_came_once(argv[1])) return 0;
  std::cerr << "the pipeline's numbers are not those that were written\n";
  return 1;
} catch (const millrace::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
