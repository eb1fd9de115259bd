// SPDX-License-Identifier: Apache-2.0
//
// Rate of image conversion on a GPU, compared with a device copy of the same number of bytes in the
// same run (`time_beside_copies`). Before a conversion is timed, some of its samples are compared
// with `ConversionWork::run_on_host`.
#include <millrace/conversion_work.h>

#include <utility>

#include "micro/gpu_benchmark.h"

namespace millrace::micro {
namespace {

/// Samples to compare at the batch's beginning, and at its end.
constexpr std::size_t compared_samples = 2;

enum class Flips { none, half, all };

void time_copies(benchmark::State& state, std::size_t bytes) {
  CudaDevice device;
  CudaStream stream(0);
  const Memory from = device.allocate_device(bytes / 2);
  const Memory to = device.allocate_device(bytes / 2);
  Timer timer(stream);
  const auto copy = [&] { stream.copy_on_device(to.data(), from.data(), bytes / 2); };
  timer.warm_up(copy);
  for ([[maybe_unused]] auto _ : state) state.SetIterationTime(timer.seconds(copy));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

/// Whether the samples from `first` on equal those that the host makes.
bool are_the_hosts(const ConversionWork& work, std::size_t first,
                   const std::vector<std::uint8_t>& source, const std::vector<std::uint8_t>& flips,
                   CudaStream& stream) {
  const std::size_t elements = work.height * work.width * work.channels;
  ConversionWork some = work;
  some.samples = std::min(compared_samples, work.samples);
  some.source = source.data() + first * elements;
  some.flips = work.flips == nullptr ? nullptr : flips.data() + first;
  std::vector<std::uint32_t> expected(some.samples * elements);
  some.destination = expected.data();
  some.run_on_host();
  const std::size_t bytes = some.samples * elements * size_of(work.dtype);
  std::vector<std::uint8_t> converted(bytes);
  const auto* from =
      static_cast<const std::uint8_t*>(work.destination) + first * elements * size_of(work.dtype);
  check(cudaMemcpyAsync(converted.data(), from, bytes, cudaMemcpyDeviceToHost, stream.handle()));
  stream.synchronize();
  return std::equal(converted.begin(), converted.end(),
                    reinterpret_cast<const std::uint8_t*>(expected.data()));
}

void time_conversions(benchmark::State& state, const Shape4& shape, DType dtype, ImageLayout layout,
                      Flips flips) {
  CudaDevice device;
  CudaStream stream(0);
  const std::vector<std::uint8_t> pixels = noise_bytes(shape.elements());
  std::vector<std::uint8_t> flip(shape.samples);
  for (std::size_t n = 0; n < flip.size(); ++n) flip[n] = flips == Flips::all || n % 2 == 1 ? 1 : 0;
  const Memory source = device.allocate_device(pixels.size());
  const Memory flips_there = device.allocate_device(flip.size());
  const Memory destination = device.allocate_device(shape.elements() * size_of(dtype));
  // Overwrites the results of other benchmarks in the same memory.
  const std::vector<std::uint8_t> nothing(destination.bytes(), 0xA5);
  stream.copy(destination.data(), nothing.data(), nothing.size());
  stream.copy(source.data(), pixels.data(), pixels.size());
  stream.copy(flips_there.data(), flip.data(), flip.size());
  ConversionWork work{.source = reinterpret_cast<const std::uint8_t*>(source.data()),
                      .destination = destination.data(),
                      .flips = flips == Flips::none
                                   ? nullptr
                                   : reinterpret_cast<const std::uint8_t*>(flips_there.data()),
                      .samples = shape.samples,
                      .height = shape.height,
                      .width = shape.width,
                      .channels = shape.channels,
                      .dtype = dtype,
                      .layout = layout};
  work.mean = dtype == DType::uint8 ? work.mean : Conversion::imagenet_mean;
  work.std = dtype == DType::uint8 ? std::array<float, Conversion::max_channels>{1, 1, 1, 1}
                                   : Conversion::imagenet_std;
  const auto convert = [&] { stream.launch(work); };
  convert();
  stream.synchronize();
  for (const std::size_t first :
       {std::size_t{0}, shape.samples - std::min(shape.samples, compared_samples)})
    if (!are_the_hosts(work, first, pixels, flip, stream)) {
      all_right() = false;
      return state.SkipWithError("the result is not the host's");
    }
  time_beside_copies(state, device, stream, shape.elements() * (1 + size_of(dtype)), convert);
}

}  // namespace

void register_conversions() {
  register_timed("DeviceBandwidth", time_copies, gpu_scale().bandwidth_bytes);
  for (const Shape4& shape : image_batches())
    for (const DType dtype : {DType::uint8, DType::float16, DType::bfloat16, DType::float32}) {
      register_timed("Copy/" + shape.name() + "/as_for_" + to_string(dtype), time_copies,
                     shape.elements() * (1 + size_of(dtype)));
      for (const ImageLayout layout : {ImageLayout::nhwc, ImageLayout::nchw})
        for (const auto& [flips, name] :
             {std::pair(Flips::none, "no_flips"), std::pair(Flips::half, "half_flipped"),
              std::pair(Flips::all, "all_flipped")})
          register_timed("Convert/" + shape.name() + "/" + to_string(dtype) +
                             (layout == ImageLayout::nhwc ? "/nhwc/" : "/nchw/") + name,
                         time_conversions, shape, dtype, layout, flips);
    }
}

}  // namespace millrace::micro
