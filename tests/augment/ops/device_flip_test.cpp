// SPDX-License-Identifier: Apache-2.0
//
// Flips on the device: batches have the bits of those that workers flip.
#include <gmock/gmock.h>
#include <millrace/host_device.h>
#include <millrace/image_transform.h>
#include <millrace/pipeline.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "augment/jpeg_dataset.h"

namespace millrace {
namespace {

struct MadeBatches {
  std::vector<std::vector<std::byte>> images;
  std::size_t flips = 0;
};

MadeBatches batches_with(FlipOn flip_on, const std::optional<Conversion>& conversion,
                         std::size_t micro_batches = 1) {
  Recipe recipe = Recipe::train(24);
  recipe.ops.back() = RandomHorizontalFlip{.p = 0.5, .on = flip_on};
  PipelineOptions options{.batch_size = 8,
                          .seed = 5,
                          .epochs = 2,
                          .conversion = conversion,
                          .slots = {.micro_batches = micro_batches}};
  Pipeline pipeline(std::make_shared<testing::JpegDataset>(), image_transform(recipe),
                    std::make_shared<HostDevice>(), options);
  MadeBatches made;
  while (const Batch batch = pipeline.next()) {
    const Tensor images = batch.images();
    const auto* data = static_cast<const std::byte*>(images.data);
    made.images.emplace_back(data, data + images.bytes());
    if (flip_on == FlipOn::device)
      made.flips += static_cast<std::size_t>(
          std::ranges::count(batch["flip"].as<std::uint8_t>(), std::uint8_t{1}));
  }
  return made;
}

TEST(DeviceFlip, HasTheBitsOfTheWorkersFlip) {
  for (const DType dtype : {DType::uint8, DType::float16})
    for (const ImageLayout layout : {ImageLayout::nhwc, ImageLayout::nchw})
      for (const std::size_t micro_batches : {1U, 3U}) {
        Conversion conversion{.dtype = dtype, .layout = layout};
        if (dtype != DType::uint8) conversion.mean = Conversion::imagenet_mean;
        const MadeBatches on_device = batches_with(FlipOn::device, conversion, micro_batches);
        EXPECT_EQ(on_device.images, batches_with(FlipOn::worker, conversion, micro_batches).images);
        EXPECT_GT(on_device.flips, 10U);
        EXPECT_LT(on_device.flips, 50U);
      }
  // Unconverted, as uint8 in NHWC, they also equal those of a run without conversion.
  const Conversion nothing{.dtype = DType::uint8, .layout = ImageLayout::nhwc};
  EXPECT_EQ(batches_with(FlipOn::device, nothing).images,
            batches_with(FlipOn::worker, std::nullopt).images);
}

TEST(DeviceFlip, WithoutConversionIsRefused) {
  try {
    (void)batches_with(FlipOn::device, std::nullopt);
    FAIL() << "nobody would have flipped";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("flips"));
  }
}

}  // namespace
}  // namespace millrace
