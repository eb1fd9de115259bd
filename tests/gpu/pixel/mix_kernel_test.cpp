// SPDX-License-Identifier: Apache-2.0
//
// The kernel that erases and mixes must produce the bits of `MixWork::run_on_host` and write
// nothing else: on a GPU, and compiled for the host, over the stand-in.
#include <gmock/gmock.h>
#include <millrace/conversion.h>
#include <millrace/mix_work.h>

#include <string>
#include <vector>

#include "gpu/device/gpu_test.h"
#include "loader/device/mixes.h"
#include "pixel/kernels.h"

namespace millrace {
namespace {

using testing::DeviceBytes;
using testing::Mixes;

class MixKernel : public testing::GpuTest, public ::testing::WithParamInterface<Mixes> {};

std::vector<std::uint8_t> bytes_of(const std::vector<std::int32_t>& numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return {begin, begin + bytes.size()};
}

TEST_P(MixKernel, GivesTheHostsBits) {
  CudaDevice device;
  CudaStream stream(0);
  for (const unsigned parts : {1U, 2U, 3U, 4U, 7U}) {  // erases, mixes, flips
    SCOPED_TRACE("parts " + std::to_string(parts));
    Mixes here = GetParam();
    here.make(parts);
    std::vector<std::uint8_t> guarded = here.images;
    guarded.insert(guarded.end(), 64, 0xA5);
    const DeviceBytes images(device, stream, guarded);
    const DeviceBytes flips(device, stream, here.flips);
    const DeviceBytes erases(device, stream, bytes_of(here.erases));
    const DeviceBytes mixes(device, stream, bytes_of(here.mixes));
    MixWork work = here.work(parts);
    work.run_on_host();
    std::vector<std::uint8_t> expected = here.images;
    expected.insert(expected.end(), 64, 0xA5);
    work.images = images.data();
    if (work.flips != nullptr) work.flips = flips.data();
    if (work.erases != nullptr) work.erases = reinterpret_cast<std::int32_t*>(erases.data());
    if (work.mixes != nullptr) work.mixes = reinterpret_cast<std::int32_t*>(mixes.data());
    stream.launch(work);
    EXPECT_TRUE(images.read() == expected);
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, MixKernel,
                         ::testing::Values(Mixes{1, 4, 5, 3}, Mixes{2, 1, 1, 1}, Mixes{6, 7, 9, 3},
                                           Mixes{5, 8, 6, 4}, Mixes{7, 33, 31, 2},
                                           Mixes{4, 64, 80, 3}, Mixes{3, 1, 1, 3},
                                           Mixes{2, 3, 1, 1}, Mixes{4, 5, 1, 3}, Mixes{8, 2, 3, 1},
                                           Mixes{6, 35, 43, 3}, Mixes{6, 35, 42, 3},
                                           Mixes{7, 37, 41, 1}, Mixes{9, 61, 67, 4},
                                           Mixes{3, 75, 90, 3}));

class MixKernels : public MixKernel {};
INSTANTIATE_TEST_SUITE_P(One, MixKernels, ::testing::Values(Mixes{2, 2, 2, 3}));

TEST_P(MixKernels, RefuseWhatTheyAreNotMadeFor) {
  CudaStream stream(0);
  Mixes mixes = GetParam();
  mixes.make(2);
  MixWork work = mixes.work(2);
  work.channels = 5;
  EXPECT_EQ(launch_kernel(work, stream.handle()).value().status, cudaErrorInvalidValue)
      << "five channels";
  work.channels = 3;
  work.samples = 0;
  EXPECT_EQ(launch_kernel(work, stream.handle()).value().status, cudaSuccess) << "nothing to do";
}

}  // namespace
}  // namespace millrace
