// SPDX-License-Identifier: Apache-2.0
//
// Processor time for samples that the device makes of stored coefficients. The device of this
// benchmark accepts batches and does nothing. Counters per sample: `cpu_us` is the processor time
// of all threads, and `kib` the size of the copy to the device. `copy_us` is the time to copy so
// many bytes in memory outside of the caches. `packed` is the share of samples that the device
// makes; workers make the others.
#include <benchmark/benchmark.h>
#include <millrace/dataset_writer.h>
#include <millrace/detail/jpeg_recoder.h>
#include <millrace/host_device.h>
#include <millrace/image_transform.h>
#include <millrace/pipeline.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "micro/photographs.h"

namespace millrace {
namespace {

/// A host stream without the copies and kernels.
class IdleStream final : public Stream {
 public:
  void copy(void*, const void*, std::size_t) override {}
  void copy_on_device(void*, const void*, std::size_t) override {}
  void copy_to_host(void* destination, const void*, std::size_t bytes) override {
    std::memset(destination, 0, bytes);  // zeros mean that no sample is marked
  }
  void launch(const DeviceWork&) override {}
  void record(Event& event) override { stream_.record(event); }
  void wait(const Event& event) override { stream_.wait(event); }
  void synchronize() override { stream_.synchronize(); }

 private:
  HostStream stream_;
};

class IdleDevice final : public Device {
 public:
  std::string name() const override { return "idle"; }
  bool copies() const override { return true; }
  Memory allocate_host(std::size_t bytes, const NumaNode& node) override {
    return host_.allocate_host(bytes, node);
  }
  Memory allocate_device(std::size_t bytes) override { return host_.allocate_device(bytes); }
  std::unique_ptr<Stream> make_stream() override { return std::make_unique<IdleStream>(); }
  std::unique_ptr<Event> make_event() override { return host_.make_event(); }

 private:
  HostDevice host_;
};

/// A temporary dataset of the photographs as stored coefficients.
class StoredPhotographs {
 public:
  StoredPhotographs() {
    std::string name = (std::filesystem::temp_directory_path() / "millrace-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error(name + ": not created");
    folder_ = name;
    DatasetWriter writer(folder_ / "photographs.lmdb");
    JpegRecoder recoder(std::make_shared<DecodeBudget>());
    std::vector<std::byte> record;
    const std::int64_t label = 0;
    for (const std::string& photograph : micro::photographs()) {
      if (!recoder.store(micro::bytes_of(photograph), record).is_ok()) continue;
      writer.append(std::vector<RecordField>{{"image", record},
                                             {"label", std::as_bytes(std::span(&label, 1))}});
    }
    writer.finish();
  }
  ~StoredPhotographs() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::shared_ptr<const Dataset> open(bool verify_checksums) const {
    return open_dataset(folder_ / "photographs.lmdb", {.verify_checksums = verify_checksums});
  }

 private:
  std::filesystem::path folder_;
};

double process_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Seconds to copy `bytes` bytes from memory to memory.
double copy_seconds(std::size_t bytes) {
  constexpr std::size_t pieces = 2048;
  std::vector<char> from(pieces * bytes, 1);
  std::vector<char> to(pieces * bytes, 2);
  const double begin = micro::thread_seconds();
  for (std::size_t piece = 0; piece < pieces; ++piece)
    std::memcpy(to.data() + piece * bytes, from.data() + piece * bytes, bytes);
  benchmark::DoNotOptimize(to.data());
  return (micro::thread_seconds() - begin) / pieces;
}

void packed_crops(benchmark::State& state, bool verify_checksums) {
  if (micro::photographs().empty()) {
    state.SkipWithError("needs " MILLRACE_SHARED_DIR "/data/photos");
    return;
  }
  const StoredPhotographs photographs;
  Recipe recipe = Recipe::train();
  recipe.decode_on = DecodeOn::device;
  Pipeline pipeline(photographs.open(verify_checksums), image_transform(recipe),
                    std::make_shared<IdleDevice>(),
                    {.batch_size = 256,
                     .conversion = Conversion{.dtype = DType::float16},
                     .runtime = make_runtime({.workers = 2})});
  for (int batch = 0; batch < 20; ++batch) benchmark::DoNotOptimize(pipeline.next().size());
  pipeline.restart_report();
  const double begin = process_seconds();
  double samples = 0;
  while (state.KeepRunning()) samples += static_cast<double>(pipeline.next().size());
  const double seconds = process_seconds() - begin;
  const Report report = pipeline.report();
  double packed = 0;
  double made = 0;
  for (const auto& [decoder, count] : report.decoders) {
    made += static_cast<double>(count);
    if (decoder.starts_with("device")) packed += static_cast<double>(count);
  }
  const double bytes = static_cast<double>(report.copied_bytes) / samples;
  state.counters["cpu_us"] = 1e6 * seconds / samples;
  state.counters["kib"] = bytes / 1024;
  state.counters["copy_us"] = 1e6 * copy_seconds(static_cast<std::size_t>(bytes));
  state.counters["packed"] = packed / made;
}
BENCHMARK_CAPTURE(packed_crops, checksums_compared, true)->UseRealTime()->MinTime(3);
BENCHMARK_CAPTURE(packed_crops, checksums_not_compared, false)->UseRealTime()->MinTime(3);

}  // namespace
}  // namespace millrace
