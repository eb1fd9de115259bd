// SPDX-License-Identifier: Apache-2.0
//
// Rate of making 224 px crops of stored coefficients on a GPU (`CropWork`), from packed crops that
// stay on the device. Before that, some images are compared with `CropWork::run_on_host`. The
// counters of `CropCounts` are what tests/gpu/cost_model.py needs: the mean work of a crop.
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
      crop_records(photographs_folder(), gpu_scale().most_samples);
  return records;
}

void add_counters(benchmark::State& state, const CropCounts& counts) {
  for (const auto& [name, mean] : counts.means()) state.counters[name] = mean;
}

/// Counts the work of random crops of all photographs, without a device.
void count_crops(benchmark::State& state) {
  if (all_records().empty()) return state.SkipWithError("needs --photos FOLDER with JPEGs");
  CropCounts counts;
  for ([[maybe_unused]] auto _ : state) {
    CropBatch batch;
    for (std::size_t n = 0; n < counted_crops * all_records().size(); ++n) {
      batch.clear();
      if (batch.add(all_records()[n % all_records().size()], n)) counts.add(batch.crop(0));
      counts.add_drawn();
    }
    state.SetIterationTime(1);
  }
  add_counters(state, counts);
}

/// Whether the device makes the first images like the host.
bool crops_as_the_host(CropWork work, const CropBatch& batch, CudaStream& stream) {
  work.samples = std::min(compared_crops, work.samples);
  stream.launch(work);
  std::vector<std::uint8_t> made(work.samples * CropBatch::image_bytes);
  check(cudaMemcpyAsync(made.data(), work.images, made.size(), cudaMemcpyDeviceToHost,
                        stream.handle()));
  stream.synchronize();
  std::vector<std::uint8_t> expected(made.size());
  std::vector<std::byte> scratch(work.samples * work.scratch_stride);
  work.places = batch.places().data();
  work.packed = batch.packed().data();
  work.images = expected.data();
  work.scratch = scratch.data();
  work.run_on_host();
  return made == expected;
}

/// `together` samples share a launch, as in a pipeline.
void time_crops(benchmark::State& state, std::size_t samples, std::size_t together) {
  if (all_records().empty()) return state.SkipWithError("needs --photos FOLDER with JPEGs");
  CropBatch batch;
  CropCounts counts;
  for (std::size_t n = 0; batch.size() < samples && n < 4 * samples; ++n)
    if (batch.add(all_records()[n % all_records().size()], n))
      counts.add(batch.crop(batch.size() - 1));
  if (batch.size() < samples) return state.SkipWithError("too few crops can be packed");
  CudaDevice device;
  CudaStream stream(0);
  const Memory places = device.allocate_device(batch.places().size());
  const Memory packed = device.allocate_device(samples);
  const Memory images = device.allocate_device(samples * CropBatch::image_bytes);
  const Memory scratch = device.allocate_device(together * CropBatch::scratch_bytes);
  stream.copy(places.data(), batch.places().data(), places.bytes());
  stream.copy(packed.data(), batch.packed().data(), packed.bytes());
  CropWork work;
  work.place_bytes = CropBatch::image_bytes;
  work.height = work.width = CropBatch::side;
  work.scratch = scratch.data();
  work.scratch_stride = CropBatch::scratch_bytes;
  const auto launch = [&](std::size_t first, std::size_t count) {
    work.places = places.data() + first * work.place_bytes;
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
  benchmark::RegisterBenchmark("CropCounts/224", count_crops)->UseManualTime()->Iterations(1);
  const std::size_t samples = std::min<std::size_t>(256, gpu_scale().most_samples);
  for (const std::size_t together : {64U, 256U})
    register_timed("Crop/224/" + std::to_string(together), time_crops, samples, together);
}

}  // namespace millrace::micro
