// SPDX-License-Identifier: Apache-2.0
//
// For tests of the kernels that make crops: runs of the kernels and of the host's reference.
#pragma once

#include <gmock/gmock.h>
#include <millrace/random.h>

#include <vector>

#include "gpu/device/gpu_test.h"
#include "gpu/pixel/packed_crops.h"
#include "pixel/kernels.h"

namespace millrace::testing {

class CropKernelTest : public GpuTest {
 protected:
  static constexpr std::uint8_t untouched = 0xA5;

  /// A random crop, as RandomResizedCrop and flips choose it.
  Resampling random_crop(Size from, Size to) {
    const auto part = [&](int size, int& begin, int& end) {
      const auto length = static_cast<int>(1 + random_.below(static_cast<std::uint64_t>(size)));
      const int rest = size - length;
      begin = static_cast<int>(random_.below(static_cast<std::uint64_t>(rest) + 1));
      end = begin + length;
    };
    int left = 0, right = 0, top = 0, bottom = 0;
    part(from.width, left, right);
    part(from.height, top, bottom);
    Resampling resampling;
    resampling.from = {right - left, bottom - top};
    resampling.to = to;
    resampling.window = {0, 0, to.width, to.height};
    resampling.interpolation =
        random_.below(2) == 0 ? Interpolation::bilinear : Interpolation::bicubic;
    resampling.like = random_.below(2) == 0 ? Like::pillow_12 : Like::pillow_13;
    resampling.mirrored = random_.below(2) == 0;
    resampling.flipped = random_.below(8) == 0;
    return shifted(resampling, from, left, top);
  }

  /// Expresses the crop as a part of the image.
  static Resampling shifted(Resampling resampling, Size image, int left, int top) {
    const Size crop = resampling.from;
    resampling.from = image;
    resampling.box =
        SourceBox{static_cast<float>(left), static_cast<float>(top),
                  static_cast<float>(left + crop.width), static_cast<float>(top + crop.height)};
    return resampling;
  }

  /// Runs the kernels and the reference. Both must give the expected images.
  static void expect_images(PackedCrops& crops) {
    const std::size_t samples = crops.packed.size();
    ASSERT_GT(samples, 0U);
    std::vector<std::uint8_t> made(crops.images.size() + 64, untouched);
    std::vector<std::uint8_t> expected = crops.images;
    expected.resize(made.size(), untouched);
    std::vector<std::uint8_t> corrupt(samples, 0);
    EXPECT_EQ(run_on_device(crops, made, corrupt), cudaSuccess);
    EXPECT_TRUE(made == expected) << "kernel: sample " << first_difference(crops, made, expected);
    EXPECT_THAT(corrupt, ::testing::Each(0));

    std::vector<std::uint8_t> here(made.size(), untouched);
    run_here(crops, here, corrupt);
    EXPECT_TRUE(here == expected) << "host: sample " << first_difference(crops, here, expected);
    EXPECT_THAT(corrupt, ::testing::Each(0));
  }

  static cudaError_t run_on_device(PackedCrops& crops, std::vector<std::uint8_t>& images,
                                   std::vector<std::uint8_t>& corrupt) {
    CudaDevice device;
    CudaStream stream(0);
    const auto bytes_of = [](auto span) {
      return std::span(reinterpret_cast<const std::uint8_t*>(span.data()), span.size_bytes());
    };
    const DeviceBytes inputs(device, stream, bytes_of(crops.inputs()));
    const DeviceBytes offsets(device, stream, bytes_of(std::span(crops.offsets)));
    const DeviceBytes packed(device, stream, crops.packed);
    const DeviceBytes made(device, stream, images);
    const DeviceBytes marks(device, stream, corrupt);
    const std::vector<std::uint8_t> poison(crops.scratch_bytes(), 0xD7);
    const DeviceBytes scratch(device, stream, poison);
    CropWork work = crops.work();
    work.inputs = reinterpret_cast<const std::byte*>(inputs.data());
    work.offsets = reinterpret_cast<const std::uint32_t*>(offsets.data());
    work.packed = packed.data();
    work.images = made.data();
    work.marks = marks.data();
    work.scratch = reinterpret_cast<std::byte*>(scratch.data());
    const cudaError_t status = launch_kernel(work, stream.handle()).value().status;
    images = made.read();
    corrupt = marks.read();
    return status;
  }

  static void run_here(PackedCrops& crops, std::vector<std::uint8_t>& images,
                       std::vector<std::uint8_t>& corrupt) {
    std::vector<std::byte> scratch(crops.scratch_bytes(), std::byte{0xD7});
    CropWork work = crops.work();
    work.inputs = crops.inputs().data();
    work.offsets = crops.offsets.data();
    work.packed = crops.packed.data();
    work.images = images.data();
    work.marks = corrupt.data();
    work.scratch = scratch.data();
    work.run_on_host();
  }

  static std::size_t first_difference(const PackedCrops& crops,
                                      const std::vector<std::uint8_t>& made,
                                      const std::vector<std::uint8_t>& expected) {
    const auto at = std::ranges::mismatch(made, expected).in1 - made.begin();
    return static_cast<std::size_t>(at) / crops.image_bytes();
  }

  Random random_{7, 0};
};

}  // namespace millrace::testing
