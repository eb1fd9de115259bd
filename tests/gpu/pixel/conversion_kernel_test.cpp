// SPDX-License-Identifier: Apache-2.0
//
// The kernel must produce the bits of `ConversionWork::run_on_host` and write nothing else: on a
// GPU, and compiled for the host, over the stand-in.
#include <gmock/gmock.h>
#include <millrace/conversion_work.h>
#include <millrace/tensor.h>

#include <algorithm>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "gpu/device/gpu_test.h"
#include "pixel/kernels.h"

namespace millrace {
namespace {

using testing::DeviceBytes;

struct Images {
  std::size_t samples;
  std::size_t height;
  std::size_t width;
  std::size_t channels;
  /// Offset of source and destination from the start of their memory, in bytes.
  std::size_t source_offset = 0;
  std::size_t destination_offset = 0;

  std::size_t elements() const { return samples * height * width * channels; }
  friend void PrintTo(const Images& images, std::ostream* out) {
    *out << images.samples << "x" << images.height << "x" << images.width << "x" << images.channels
         << ", source + " << images.source_offset << ", destination + "
         << images.destination_offset;
  }
};

constexpr std::size_t guard_bytes = 256;
constexpr std::uint8_t guard = 0xA5;

class ConversionKernel : public testing::GpuTest, public ::testing::WithParamInterface<Images> {
 protected:
  void SetUp() override {
    testing::GpuTest::SetUp();
    if (IsSkipped()) return;
    device_ = std::make_unique<CudaDevice>();
    stream_ = std::make_unique<CudaStream>(0);
  }

  void expect_the_hosts_bits(const Images& images, DType dtype, ImageLayout layout,
                             const std::vector<std::uint8_t>& flips, float mean, float std) {
    SCOPED_TRACE(std::string(to_string(dtype)) +
                 (layout == ImageLayout::nhwc ? ", NHWC" : ", NCHW") +
                 (flips.empty() ? "" : ", flips") + ", std " + std::to_string(std));
    std::vector<std::uint8_t> source(images.source_offset + images.elements());
    std::uint32_t state = 12345;
    for (std::uint8_t& byte : source)
      byte = static_cast<std::uint8_t>((state = state * 1664525 + 1013904223) >> 24);
    const std::size_t begin = guard_bytes + images.destination_offset;
    std::vector<std::uint8_t> expected(begin + images.elements() * size_of(dtype) + guard_bytes,
                                       guard);

    ConversionWork work{.samples = images.samples,
                        .height = images.height,
                        .width = images.width,
                        .channels = images.channels,
                        .dtype = dtype,
                        .layout = layout,
                        .mean = {mean, mean / 2, mean / 3, mean / 4},
                        .std = {std, std * 2, std * 3, std * 4}};
    DeviceBytes source_there(*device_, *stream_, source);
    DeviceBytes destination_there(*device_, *stream_, expected);
    const DeviceBytes flips_there(*device_, *stream_,
                                  flips.empty() ? std::vector<std::uint8_t>(1) : flips);
    work.source = source_there.data() + images.source_offset;
    work.destination = destination_there.data() + begin;
    work.flips = flips.empty() ? nullptr : flips_there.data();
    stream_->launch(work);
    const std::vector<std::uint8_t> converted = destination_there.read();

    // The host needs aligned elements.
    std::vector<std::uint32_t> aligned(images.elements() + 1);
    work.source = source.data() + images.source_offset;
    work.destination = aligned.data();
    work.flips = flips.empty() ? nullptr : flips.data();
    work.run_on_host();
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(aligned.data());
    std::copy_n(bytes, images.elements() * size_of(dtype),
                expected.begin() + static_cast<std::ptrdiff_t>(begin));
    const auto first = std::ranges::mismatch(converted, expected).in1 - converted.begin();
    EXPECT_TRUE(converted == expected)
        << "the first other byte is " << first - static_cast<std::ptrdiff_t>(begin) << " of "
        << images.elements() * size_of(dtype);
  }

  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<CudaStream> stream_;
};

TEST_P(ConversionKernel, GivesTheHostsBits) {
  const Images& images = GetParam();
  std::vector<std::uint8_t> some(images.samples);
  for (std::size_t n = 0; n < images.samples; ++n)
    some[n] = n % 3 == 0 ? 0 : static_cast<std::uint8_t>(n * 85);
  for (const DType dtype : {DType::uint8, DType::float16, DType::bfloat16, DType::float32}) {
    if (images.destination_offset % size_of(dtype) != 0) continue;
    for (const ImageLayout layout : {ImageLayout::nhwc, ImageLayout::nchw})
      for (const auto& flips :
           {std::vector<std::uint8_t>{}, some, std::vector<std::uint8_t>(images.samples, 1)})
        expect_the_hosts_bits(images, dtype, layout, flips, dtype == DType::uint8 ? 0.0F : 0.485F,
                              dtype == DType::uint8 ? 1.0F : 0.229F);
  }
}
INSTANTIATE_TEST_SUITE_P(
    Sizes, ConversionKernel,
    ::testing::Values(
        Images{1, 1, 1, 1}, Images{3, 1, 1, 3}, Images{2, 3, 5, 1}, Images{2, 3, 5, 2},
        Images{2, 3, 5, 3}, Images{2, 3, 5, 4}, Images{3, 31, 17, 3}, Images{3, 17, 31, 4},
        Images{2, 224, 224, 3}, Images{1, 223, 225, 3}, Images{1, 225, 223, 1},
        // Whole vectors of some dtypes, or of all; rows of one vector.
        Images{5, 3, 4, 3}, Images{5, 3, 8, 3}, Images{5, 3, 16, 3}, Images{5, 1, 48, 3},
        Images{4, 7, 36, 3}, Images{4, 7, 40, 3}, Images{7, 64, 80, 3}, Images{2, 64, 32, 4},
        // Rows that do not consist of whole vectors: of few pixels, and of many.
        Images{1, 1, 1, 3}, Images{2, 5, 1, 3}, Images{3, 4, 2, 3}, Images{2, 1, 7, 3},
        Images{3, 5, 9, 3}, Images{4, 6, 13, 3}, Images{3, 9, 33, 3}, Images{3, 11, 299, 3},
        Images{2, 13, 518, 3}, Images{3, 5, 61, 3, 3, 0}, Images{3, 5, 61, 3, 0, 4},
        Images{3, 5, 61, 3, 13, 12}, Images{3, 5, 62, 3, 7, 2}, Images{3, 5, 63, 3, 1, 1},
        // Offsets that vectors do not allow.
        Images{2, 8, 16, 3, 1, 0}, Images{2, 8, 16, 3, 4, 0}, Images{2, 8, 16, 3, 8, 0},
        Images{2, 8, 16, 3, 0, 1}, Images{2, 8, 16, 3, 0, 4}, Images{2, 8, 16, 3, 0, 8},
        Images{2, 8, 16, 3, 16, 16}, Images{2, 8, 16, 3, 48, 32}));

class LargeConversions : public ConversionKernel {};
INSTANTIATE_TEST_SUITE_P(AnyGpu, LargeConversions, ::testing::Values(Images{}));

// More elements than run at once on this GPU, and not a multiple of that number. So every thread
// processes a second piece, and some a third.
TEST_P(LargeConversions, GiveTheHostsBits) {
  int multiprocessors = 0;
  ASSERT_EQ(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0),
            cudaSuccess);
  constexpr std::size_t vector_threads = 2 * 768;
  constexpr std::size_t rows = 8 * 8;
  constexpr std::size_t slots = 2 * 640 * 2;
  const auto many = static_cast<std::size_t>(multiprocessors);
  for (const DType dtype : {DType::uint8, DType::float16, DType::bfloat16, DType::float32}) {
    const std::size_t pixels = many * vector_threads * 24 / 10 * (16 / size_of(dtype));
    const Images vectors{pixels / (16 * 48) + 1, 16, 48, 3};
    const std::size_t of_slots = many * slots * 12 / 10 * (16 / size_of(dtype)) / 3;
    const Images odd{of_slots / (31 * 47) + 1, 31, 47, 3};
    const Images any{many * rows * 24 / 10 / 31 + 1, 31, 7, 4};
    for (const Images& images : {vectors, odd, any}) {
      std::vector<std::uint8_t> flips(images.samples);
      for (std::size_t n = 0; n < flips.size(); ++n) flips[n] = static_cast<std::uint8_t>(n % 2);
      for (const ImageLayout layout : {ImageLayout::nhwc, ImageLayout::nchw})
        expect_the_hosts_bits(images, dtype, layout, flips, dtype == DType::uint8 ? 0.0F : 0.485F,
                              dtype == DType::uint8 ? 1.0F : 0.229F);
    }
  }
}

class ConversionKernels : public ConversionKernel {};
INSTANTIATE_TEST_SUITE_P(Small, ConversionKernels,
                         ::testing::Values(Images{2, 3, 16, 3}, Images{2, 3, 5, 4}));

// Results that are infinite or subnormal in 16 bits, or subnormal in float32.
TEST_P(ConversionKernels, GiveTheHostsBitsFarFromOne) {
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32})
    for (const ImageLayout layout : {ImageLayout::nhwc, ImageLayout::nchw})
      for (const float std : {1e-6F, 1e-3F, 1e3F, 1e6F, 1e37F})
        expect_the_hosts_bits(GetParam(), dtype, layout, {1, 0}, 0.5F, std);
}

TEST_P(ConversionKernels, RefuseWhatTheyAreNotMadeFor) {
  std::vector<std::uint8_t> bytes(64);
  const DeviceBytes memory(*device_, *stream_, bytes);
  ConversionWork work{.source = memory.data(),
                      .destination = memory.data(),
                      .samples = 1,
                      .height = 1,
                      .width = 1,
                      .channels = 5};
  EXPECT_EQ(launch_kernel(work, stream_->handle()).value().status, cudaErrorInvalidValue)
      << "five channels";
  work.channels = 0;
  EXPECT_EQ(launch_kernel(work, stream_->handle()).value().status, cudaErrorInvalidValue)
      << "no channels";
  work.channels = 3;
  work.dtype = DType::int64;
  EXPECT_EQ(launch_kernel(work, stream_->handle()).value().status, cudaErrorInvalidValue)
      << "int64";
  EXPECT_THROW(stream_->launch(work), Error);
  work.dtype = DType::float32;
  work.samples = 0;
  EXPECT_EQ(launch_kernel(work, stream_->handle()).value().status, cudaSuccess) << "nothing to do";
}

struct InvertWork {
  static constexpr const char* kernel = "invert";
  void run_on_host() const {}
};

TEST_P(ConversionKernels, AreNotLaunchedForOtherWork) {
  try {
    stream_->launch(InvertWork{});
    FAIL() << "there is no such kernel";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("no CUDA kernel for the work \"invert\""));
  }
}

}  // namespace
}  // namespace millrace
