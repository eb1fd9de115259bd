// SPDX-License-Identifier: Apache-2.0
//
// Batches of photographs that the host converts with the workers' help equal those of the plain
// conversion.
#include <gmock/gmock.h>
#include <millrace/dataset_writer.h>
#include <millrace/detail/plain_conversion.h>
#include <millrace/host_device.h>
#include <millrace/image_transform.h>
#include <millrace/pipeline.h>

#include <cstring>
#include <memory>
#include <vector>

#include "support/jpeg_samples.h"
#include "support/pictures.h"
#include "support/shared_data.h"

namespace millrace {
namespace {

TEST(PhotographConversion, GivesThePlainConversionsBits) {
  MILLRACE_NEEDS_SHARED("data/photos");
  std::vector<testing::Bytes> photographs;
  for (const auto& file : testing::jpeg_files(testing::shared_dir() / "data/photos"))
    if (photographs.size() < 48) photographs.push_back(testing::read_file(file));
  const testing::TemporaryFolder folder;
  testing::write_pictures(folder / "photos.lmdb", photographs);
  const auto dataset = open_dataset((folder / "photos.lmdb").string());
  PipelineOptions options{.batch_size = 16, .epochs = 1, .runtime = make_runtime({.workers = 2})};
  const auto device = std::make_shared<HostDevice>();
  for (const DType dtype : {DType::uint8, DType::float16, DType::bfloat16, DType::float32})
    for (const ImageLayout layout : {ImageLayout::nhwc, ImageLayout::nchw}) {
      options.conversion.reset();
      Pipeline plain(dataset, image_transform(Recipe::train(224)), device, options);
      Conversion conversion{.dtype = dtype, .layout = layout};
      if (dtype != DType::uint8) {
        conversion.mean = Conversion::imagenet_mean;
        conversion.std = Conversion::imagenet_std;
      }
      options.conversion = conversion;
      Pipeline converting(dataset, image_transform(Recipe::train(224)), device, options);
      std::size_t batches = 0;
      for (; const Batch batch = converting.next(); ++batches) {
        const Batch pixels = plain.next();
        std::vector<std::uint32_t> expected(pixels.images().shape.elements());
        convert_plainly({.source = pixels.images().as<std::uint8_t>().data(),
                         .destination = expected.data(),
                         .samples = pixels.size(),
                         .height = 224,
                         .width = 224,
                         .channels = 3,
                         .dtype = dtype,
                         .layout = layout,
                         .mean = conversion.mean,
                         .std = conversion.std});
        ASSERT_EQ(std::memcmp(batch.images().data, expected.data(), batch.images().bytes()), 0)
            << to_string(dtype) << ", batch " << batch.number();
      }
      EXPECT_EQ(batches, 3U);
    }
}

}  // namespace
}  // namespace millrace
