// SPDX-License-Identifier: Apache-2.0
//
// Rate of making 224 px crops of stored coefficients and of JPEGs on a GPU (`CropWork`), from
// packed crops that stay on the device. Before that, some images are compared with
// `CropWork::run_on_host`. tests/gpu/cost_model.py needs the counters of `CropCounts` and
// `JpegCropCounts`: the mean work of a crop.
#include <algorithm>

#include "micro/crop_batch.h"
#include "micro/gpu_benchmark.h"

namespace millrace::micro {
namespace {

/// Number of samples that are compared.
constexpr std::size_t compared_crops = 4;
/// Random crops of each photograph that are counted.
constexpr std::size_t counted_crops = 20;

const std::vector<CropRecord>& all_records() {
  static const std::vector<CropRecord> records =
      crop_records(photographs_folder(), gpu_scale().max_samples, CropForm::coefficients);
  return records;
}
const std::vector<CropRecord>& all_jpegs() {
  static const std::vector<CropRecord> records =
      crop_records(photographs_folder(), gpu_scale().max_samples, CropForm::jpeg);
  return records;
}

void add_counters(benchmark::State& state, const CropCounts& counts) {
  for (const auto& [name, mean] : counts.means()) state.counters[name] = mean;
}

/// Counts the work of random crops of all photographs, without a device.
void count_crops(benchmark::State& state, const std::vector<CropRecord>& records) {
  if (records.empty()) return state.SkipWithError("needs --photos FOLDER with JPEGs");
  CropCounts counts;
  for ([[maybe_unused]] auto _ : state) {
    CropBatch batch;
    for (std::size_t n = 0; n < counted_crops * records.size(); ++n) {
      batch.clear();
      if (batch.add(records[n % records.size()], n)) counts.add(batch.crop(0));
      counts.add_drawn();
    }
    state.SetIterationTime(1);
  }
  add_counters(state, counts);
}

/// Whether the device makes the same first images as the host.
bool crops_as_the_host(CropWork work, const CropBatch& batch, CudaStream& stream) {
  work.samples = std::min(compared_crops, work.samples);
  stream.launch(work);
  std::vector<std::uint8_t> made(work.samples * CropBatch::image_bytes);
  check(cudaMemcpyAsync(made.data(), work.images, made.size(), cudaMemcpyDeviceToHost,
                        stream.handle()));
  stream.synchronize();
  std::vector<std::uint8_t> expected(made.size());
  std::vector<std::byte> scratch(work.scratch_bytes);
  work.inputs = batch.inputs().data();
  work.offsets = batch.offsets().data();
  work.packed = batch.packed().data();
  work.images = expected.data();
  work.scratch = scratch.data();
  work.run_on_host();
  return made == expected;
}

/// Times the crops of `records` and counts their work.
void time_crops(benchmark::State& state, const std::vector<CropRecord>& records,
                std::size_t samples) {
  if (records.empty()) return state.SkipWithError("needs --photos FOLDER with JPEGs");
  constexpr std::size_t together = CropWork::max_samples;
  CropBatch batch;
  CropCounts counts;
  for (std::size_t n = 0; batch.size() < samples && n < 4 * samples; ++n)
    if (batch.add(records[n % records.size()], n)) counts.add(batch.crop(batch.size() - 1));
  if (batch.size() < samples) return state.SkipWithError("too few crops can be packed");
  std::size_t scratch_bytes = 0;
  for (std::size_t first = 0; first < samples; first += together)
    scratch_bytes =
        std::max(scratch_bytes, batch.scratch_bytes(first, std::min(together, samples - first)));
  CudaDevice device;
  CudaStream stream(0);
  const auto on_device = [&](const auto& values) {
    const auto bytes = std::as_bytes(std::span(values));
    Memory memory = device.allocate_device(bytes.size());
    stream.copy(memory.data(), bytes.data(), bytes.size());
    stream.synchronize();
    return memory;
  };
  const Memory inputs = on_device(batch.inputs());
  const Memory offsets = on_device(batch.offsets());
  const Memory packed = on_device(batch.packed());
  const Memory images = device.allocate_device(samples * CropBatch::image_bytes);
  const Memory scratch = device.allocate_device(scratch_bytes);
  CropWork work;
  work.height = work.width = CropBatch::side;
  work.inputs = inputs.data();
  work.scratch = scratch.data();
  work.scratch_bytes = scratch_bytes;
  const auto launch = [&](std::size_t first, std::size_t count) {
    work.offsets = reinterpret_cast<const std::uint32_t*>(offsets.data()) + first;
    work.packed = reinterpret_cast<const std::uint8_t*>(packed.data()) + first;
    work.images = reinterpret_cast<std::uint8_t*>(images.data()) + first * CropBatch::image_bytes;
    work.samples = count;
    stream.launch(work);
  };
  launch(0, std::min(samples, together));
  if (!crops_as_the_host(work, batch, stream)) {
    all_right() = false;
    return state.SkipWithError("the result is not the host's");
  }
  const auto launch_all = [&] {
    for (std::size_t first = 0; first < samples; first += together)
      launch(first, std::min(together, samples - first));
  };
  Timer timer(stream);
  timer.warm_up(launch_all);
  double seconds = 0;
  for ([[maybe_unused]] auto _ : state) {
    const double one = timer.seconds(launch_all);
    state.SetIterationTime(one);
    seconds += one;
  }
  state.counters["samples_per_second"] =
      static_cast<double>(state.iterations()) * static_cast<double>(samples) / seconds;
  state.counters["samples_per_launch"] = static_cast<double>(std::min(together, samples));
  add_counters(state, counts);
}

}  // namespace

void register_crops() {
  const std::size_t samples = std::min<std::size_t>(256, gpu_scale().max_samples);
  const auto add = [&](const std::string& name, const std::vector<CropRecord>& (*records)()) {
    benchmark::RegisterBenchmark(
        (name + "Counts/224").c_str(),
        [records](benchmark::State& state) { count_crops(state, records()); })
        ->UseManualTime()
        ->Iterations(1);
    register_timed(name + "/224/64", [records, samples](benchmark::State& state) {
      time_crops(state, records(), samples);
    });
  };
  add("Crop", all_records);
  add("JpegCrop", all_jpegs);
}

}  // namespace millrace::micro
