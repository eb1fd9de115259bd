// SPDX-License-Identifier: Apache-2.0
//
// Rate of mixing a batch's images in pairs on a GPU, compared with a device copy of the same number
// of bytes in the same run (`time_beside_copies`). Before the mixing is timed, some samples are
// compared with `MixWork::run_on_host`.
#include <millrace/mix_work.h>

#include "micro/gpu_benchmark.h"

namespace millrace::micro {
namespace {

/// Number of samples whose pairs are compared.
constexpr std::size_t compared_mixes = 4;

/// Whether the device mixes the first samples exactly as the host does.
bool mixes_as_the_host(MixWork work, const std::vector<std::uint8_t>& pixels,
                       const std::vector<std::int32_t>& mixes, CudaStream& stream) {
  work.samples = std::min(compared_mixes, work.samples);
  stream.launch(work);
  const std::size_t bytes = work.samples * work.height * work.width * work.channels;
  std::vector<std::uint8_t> mixed(bytes);
  check(cudaMemcpyAsync(mixed.data(), work.images, bytes, cudaMemcpyDeviceToHost, stream.handle()));
  stream.synchronize();
  std::vector<std::uint8_t> expected = pixels;
  expected.resize(bytes);
  work.images = expected.data();
  work.mixes = mixes.data();
  work.run_on_host();
  return mixed == expected;
}

/// Times the mixing. With boxes, each image gets a box of half its width and height from the other
/// image. Without boxes, the two images are blended as a whole.
void time_mixing(benchmark::State& state, const Shape4& shape, bool boxes) {
  CudaDevice device;
  CudaStream stream(0);
  const std::vector<std::uint8_t> pixels = noise_bytes(shape.elements());
  const auto width = static_cast<std::int32_t>(shape.width);
  const auto height = static_cast<std::int32_t>(shape.height);
  std::vector<std::int32_t> mixes;
  for (std::size_t sample = 0; sample < shape.samples; ++sample)
    if (boxes)
      mixes.insert(mixes.end(), {256, width / 4, height / 4, width / 2, height / 2});
    else
      mixes.insert(mixes.end(), {100, 0, 0, 0, 0});
  const Memory images = device.allocate_device(pixels.size());
  const Memory mixes_there = device.allocate_device(mixes.size() * sizeof(std::int32_t));
  stream.copy(images.data(), pixels.data(), pixels.size());
  stream.copy(mixes_there.data(), mixes.data(), mixes_there.bytes());
  const MixWork work{.images = reinterpret_cast<std::uint8_t*>(images.data()),
                     .mixes = reinterpret_cast<const std::int32_t*>(mixes_there.data()),
                     .samples = shape.samples,
                     .height = shape.height,
                     .width = shape.width,
                     .channels = shape.channels};
  if (!mixes_as_the_host(work, pixels, mixes, stream)) {
    all_right() = false;
    return state.SkipWithError("the result is not the host's");
  }
  time_beside_copies(state, device, stream, 2 * shape.elements(), [&] { stream.launch(work); });
}

}  // namespace

void register_mixes() {
  for (const Shape4& shape : image_batches())
    for (const bool boxes : {false, true})
      register_timed("Mix/" + shape.name() + (boxes ? "/cutmix" : "/mixup"), time_mixing, shape,
                     boxes);
}

}  // namespace millrace::micro
