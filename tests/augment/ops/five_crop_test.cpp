// SPDX-License-Identifier: Apache-2.0
//
// Samples of several images. padding_test compares their windows with torchvision.
#include <gtest/gtest.h>
#include <millrace/colour_operations.h>
#include <millrace/detail/plain_conversion.h>
#include <millrace/host_device.h>
#include <millrace/mix.h>
#include <millrace/pipeline.h>

#include "augment/jpeg_dataset.h"
#include "support/recipe_text.h"
#include "support/sample_maker.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::encode;
using testing::Maker;
using testing::noise;
using testing::why_no_list;

TEST(FiveCropOperation, RunsWhatFollowsOnEachWithTheSameNumbers) {
  const Bytes encoded = encode(noise(64, 50, 2), {});
  const Operation jitter = ColorJitter{.brightness = {0.2, 1.8}};
  Random random(3, 9);
  Maker five({{64, 50}, {FiveCrop{}, jitter}});
  ASSERT_TRUE(five.make(encoded, 0, random).is_ok());
  Random same(3, 9);
  Maker one({{64, 50}, {CenterCrop{}, jitter}});
  ASSERT_TRUE(one.make(encoded, 0, same).is_ok());
  const testing::Image all = five.image();
  const testing::Image image = one.image();
  for (std::size_t view = 0; view < 5; ++view)
    EXPECT_TRUE(std::ranges::equal(
        std::span(all.pixels).subspan(view * image.pixels.size(), image.pixels.size()),
        image.pixels))
        << view;
  EXPECT_EQ(random.bits64(), same.bits64());
}

TEST(FiveCropOperation, RefusesAnImageThatIsTooSmall) {
  const Bytes encoded = encode(noise(30, 20, 2), {});
  Random random(1, 1);
  EXPECT_EQ(Maker({{31, 20}, {FiveCrop{}}}).make(encoded, 0, random).reason(),
            "five_crop cannot take 31 x 20 of an image of 30 x 20");
  EXPECT_EQ(Maker({{30, 21}, {TenCrop{}}}).make(encoded, 0, random).reason(),
            "ten_crop cannot take 30 x 21 of an image of 30 x 20");
}

TEST(FiveCropOperation, TakesNothingThatIsForOneImage) {
  EXPECT_EQ(why_no_list(R"([{"op": "five_crop"}, {"op": "random_erasing", "on": "device"}])"),
            "train.json: ops[1] (random_erasing) runs on the device, which takes one image of a "
            "sample, and ops[0] (five_crop) makes 5");
  Recipe mixed{{8, 8}, {TenCrop{}}};
  mixed.mix = Mix{.classes = 3};
  EXPECT_THROW(mixed.validate(), Error);
}

TEST(FiveCropOperation, IsConvertedImageByImage) {
  const auto dataset = std::make_shared<testing::JpegDataset>();
  const auto device = std::make_shared<HostDevice>();
  const auto transform = image_transform({{30, 20}, {FiveCrop{}, RandomHorizontalFlip{}}});
  PipelineOptions options{.batch_size = 6, .epochs = 1, .runtime = make_runtime({.workers = 2})};
  for (const ImageLayout layout : {ImageLayout::nhwc, ImageLayout::nchw}) {
    options.conversion.reset();
    Pipeline plain(dataset, transform, device, options);
    options.conversion = Conversion{.layout = layout, .mean = Conversion::imagenet_mean};
    Pipeline converting(dataset, transform, device, options);
    std::size_t batches = 0;
    for (; const Batch batch = converting.next(); ++batches) {
      const Batch pixels = plain.next();
      EXPECT_EQ(pixels.images().shape, (Shape{6, 5, 20, 30, 3}));
      EXPECT_EQ(batch.images().shape,
                layout == ImageLayout::nhwc ? (Shape{6, 5, 20, 30, 3}) : (Shape{6, 5, 3, 20, 30}));
      std::vector<float> expected(pixels.images().shape.elements());
      convert_plainly({.source = pixels.images().as<std::uint8_t>().data(),
                       .destination = expected.data(),
                       .samples = 5 * pixels.size(),
                       .height = 20,
                       .width = 30,
                       .channels = 3,
                       .layout = layout,
                       .mean = Conversion::imagenet_mean,
                       .std = {1, 1, 1, 1}});
      EXPECT_TRUE(std::ranges::equal(batch.images().as<float>(), expected)) << batches;
    }
    EXPECT_EQ(batches, 5U);
  }
}

TEST(FiveCropOperation, ComesThroughJson) {
  EXPECT_EQ(Operation(FiveCrop{}).to_json(), R"({"op":"five_crop"})");
  EXPECT_EQ(Operation(TenCrop{.vertical_flip = true}).to_json(),
            R"({"op":"ten_crop","vertical_flip":true})");
  for (const char* json : {R"({"op":"five_crop"})", R"({"op":"ten_crop","vertical_flip":true})"})
    EXPECT_EQ(testing::operations_of("[" + std::string(json) + "]").front().to_json(), json);
}

}  // namespace
}  // namespace millrace
