// SPDX-License-Identifier: Apache-2.0
//
// The device makes images of every EXIF orientation, with the bits of workers.
#include <gmock/gmock.h>
#include <millrace/detail/jpeg_recoder.h>
#include <millrace/host_device.h>
#include <millrace/image_transform.h>
#include <millrace/pipeline.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "augment/orientations.h"
#include "support/pictures.h"
#include "support/shared_data.h"

namespace millrace {
namespace {

using testing::Bytes;
using ::testing::ElementsAre;
using ::testing::Pair;

const char* const from_coefficients = "device (coefficients)";
const char* const from_jpeg = "device (JPEG)";

Recipe turned_first(Recipe recipe) {
  recipe.ops.insert(recipe.ops.begin(), ExifTranspose{});
  return recipe;
}

struct TurnedRun {
  std::vector<std::byte> images{};
  Report report{};
};

class TurnedDeviceCrops : public ::testing::Test {
 protected:
  TurnedDeviceCrops() {
    options_.batch_size = 6;
    options_.seed = 5;
    options_.epochs = 3;
    options_.slots.prefetch = 2;
    options_.conversion = Conversion{.dtype = DType::float32};
    options_.runtime = make_runtime({.workers = 2});
  }

  /// Images of every orientation, with each subsampling and grey.
  static std::vector<Bytes> jpegs() {
    std::vector<Bytes> made;
    for (int orientation = 1; orientation <= 8; ++orientation)
      for (const auto& [across, down, channels] :
           {std::array{1, 1, 3}, {2, 1, 3}, {2, 2, 3}, {1, 2, 3}, {1, 1, 1}}) {
        const auto number = static_cast<int>(made.size());
        const testing::Image image = testing::noise(43 + 2 * orientation, 90 - number,
                                                    static_cast<unsigned>(number), channels);
        made.push_back(testing::with_orientation(
            testing::encode(image, {.h = {across, 1, 1, 1}, .v = {down, 1, 1, 1}}), orientation));
      }
    return made;
  }

  static std::vector<Bytes> coefficients(const std::vector<Bytes>& jpegs) {
    JpegRecoder recoder(std::make_shared<DecodeBudget>());
    std::vector<Bytes> records(jpegs.size());
    for (std::size_t n = 0; n < jpegs.size(); ++n)
      EXPECT_TRUE(recoder.store(jpegs[n], records[n]).is_ok());
    return records;
  }

  TurnedRun run(const std::vector<Bytes>& images, Recipe recipe, DecodeOn decode_on) {
    recipe.decode_on = decode_on;
    const testing::TemporaryFolder folder;
    testing::write_pictures(folder / "images.lmdb", images);
    HostStream stream;
    Pipeline pipeline(open_dataset((folder / "images.lmdb").string()), image_transform(recipe),
                      std::make_shared<HostDevice>(HostDeviceOptions{.copies = true}), options_);
    TurnedRun made;
    while (const Batch batch = pipeline.next(stream)) {
      stream.synchronize();
      const Tensor tensor = batch["image"];
      const auto* const data = static_cast<const std::byte*>(tensor.data);
      made.images.insert(made.images.end(), data, data + tensor.bytes());
    }
    made.report = pipeline.report();
    return made;
  }

  /// Compares the batches with those of workers. Returns the names of the decoders with the numbers
  /// of their samples.
  std::map<std::string, std::uint64_t> expect_same(const std::vector<Bytes>& images,
                                                   const Recipe& recipe) {
    const TurnedRun of_workers = run(images, recipe, DecodeOn::worker);
    const TurnedRun of_device = run(images, recipe, DecodeOn::device);
    EXPECT_FALSE(of_workers.images.empty());
    EXPECT_TRUE(of_device.images == of_workers.images);
    return {of_device.report.decoders.begin(), of_device.report.decoders.end()};
  }

  PipelineOptions options_;
};

TEST_F(TurnedDeviceCrops, OfCoefficientsAreAllMadeOnTheDevice) {
  const std::vector<Bytes> images = coefficients(jpegs());
  Recipe other = turned_first({{88, 100},
                               {RandomResizedCrop{.interpolation = Interpolation::bicubic},
                                RandomHorizontalFlip{}, RandomVerticalFlip{}}});
  other.like = Like::pillow_12;
  for (const Recipe& recipe :
       {turned_first(Recipe::train(96)), turned_first(Recipe::eval(90)), other})
    EXPECT_THAT(expect_same(images, recipe),
                ElementsAre(Pair(from_coefficients, options_.epochs * images.size())));
}

// The first epoch makes the seek indices. In the second one a record may be read before its index
// is stored, since batches are made ahead.
TEST_F(TurnedDeviceCrops, OfJpegsAreMadeOnTheDeviceInLaterEpochs) {
  const std::vector<Bytes> images = jpegs();
  for (const Like like : {Like::pillow_12, Like::pillow_13}) {
    Recipe recipe = turned_first(Recipe::eval(90));
    recipe.like = like;
    auto decoders = expect_same(images, recipe);
    EXPECT_GE(decoders[from_jpeg], images.size());
  }
  EXPECT_GT(expect_same(images, turned_first(Recipe::train(96)))[from_jpeg], images.size() / 4);
}

TEST_F(TurnedDeviceCrops, OfPhotographsAreMadeOnTheDevice) {
  MILLRACE_NEEDS_SHARED("data/exif");
  std::vector<Bytes> photographs;
  for (int orientation = 1; orientation <= 8; ++orientation)
    photographs.push_back(testing::read_file(testing::shared_dir() / "data" / "exif" /
                                             ("Portrait_" + std::to_string(orientation) + ".jpg")));
  options_.batch_size = 2;
  Recipe recipe = turned_first({{288, 224}, {ResizedCrop{{731, 613, 405, 357}}}});
  EXPECT_THAT(expect_same(coefficients(photographs), recipe),
              ElementsAre(Pair(from_coefficients, options_.epochs * photographs.size())));
  recipe.ops.push_back(RandomHorizontalFlip{});
  EXPECT_GE(expect_same(photographs, recipe)[from_jpeg], photographs.size());
}

}  // namespace
}  // namespace millrace
