// SPDX-License-Identifier: Apache-2.0
//
// Batches have the same bits whether workers make the images of coefficients and JPEGs or the
// device.
#include <gmock/gmock.h>
#include <millrace/colour_operations.h>
#include <millrace/detail/jpeg_recoder.h>
#include <millrace/host_device.h>
#include <millrace/image_transform.h>
#include <millrace/pipeline.h>
#include <millrace/warp_operations.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/pictures.h"

namespace millrace {
namespace {

using testing::Bytes;
using ::testing::HasSubstr;

const char* const by_device = "device (coefficients)";
const char* const jpegs_by_device = "device (JPEG)";

struct DeviceRun {
  std::vector<std::byte> images{};
  std::vector<std::uint64_t> indices{};
  /// The field "packed" of each sample, and its sum.
  std::vector<bool> is_packed{};
  std::uint64_t packed = 0;
  Report report{};
};

/// Records of coefficients of several kinds of JPEG, and some JPEGs. One record of each is corrupt.
class DeviceCrops : public ::testing::Test {
 protected:
  static constexpr std::size_t records = 24;

  DeviceCrops() {
    JpegRecoder recoder(std::make_shared<DecodeBudget>());
    std::vector<testing::Encoding> encodings = testing::encodings();
    std::erase_if(encodings, [&](const testing::Encoding& encoding) {
      Bytes record;
      return !recoder.store(encode(testing::noise(40, 40, 1), encoding), record).is_ok();
    });
    std::vector<Bytes> images;
    for (std::size_t n = 0; n < records; ++n) {
      const Bytes jpeg =
          encode(testing::noise(40 + 3 * static_cast<int>(n), 70 - static_cast<int>(n) / 2,
                                static_cast<unsigned>(n)),
                 encodings[n % encodings.size()]);
      jpegs_.push_back(jpeg);
      Bytes record;
      images.push_back(n % 6 != 5 && recoder.store(jpeg, record).is_ok() ? record : jpeg);
    }
    images[3][images[3].size() / 2] ^= std::byte{0x40};
    for (std::size_t at = images[3].size() / 2; at < images[3].size() * 3 / 4; ++at)
      images[3][at] = std::byte{0xFF};
    testing::write_pictures(folder_ / "coefficients.lmdb", images);
    testing::write_pictures(folder_ / "jpegs.lmdb", jpegs_);
    options_.batch_size = 7;
    options_.seed = 3;
    options_.epochs = 2;
    options_.bad_records = BadRecords::replace;
    options_.conversion = Conversion{.dtype = DType::float32};
    options_.runtime = make_runtime({.workers = 2});
  }

  DeviceRun run(Recipe recipe, DecodeOn decode_on, const char* dataset = "coefficients.lmdb") {
    recipe.decode_on = decode_on;
    auto device = std::make_shared<HostDevice>(HostDeviceOptions{.copies = true});
    HostStream stream;
    Pipeline pipeline(open_dataset((folder_ / dataset).string()), image_transform(recipe), device,
                      options_);
    DeviceRun made;
    while (const Batch batch = pipeline.next(stream)) {
      for (const MicroBatch& part : batch.micro_batches()) {
        stream.synchronize();
        const Tensor tensor = part["image"];
        const auto* const data = static_cast<const std::byte*>(tensor.data);
        made.images.insert(made.images.end(), data, data + tensor.bytes());
        const Tensor indices = part["index"];
        const auto* const numbers = static_cast<const std::uint64_t*>(indices.data);
        made.indices.insert(made.indices.end(), numbers, numbers + indices.shape[0]);
        if (decode_on == DecodeOn::worker) continue;
        const auto* const packed = static_cast<const std::uint8_t*>(part["packed"].data);
        for (std::size_t n = 0; n < indices.shape[0]; ++n) {
          made.is_packed.push_back(packed[n] == 1);
          made.packed += packed[n];
        }
      }
    }
    made.report = pipeline.report();
    return made;
  }

  void expect_same(const Recipe& recipe, bool packs = true) {
    const DeviceRun of_workers = run(recipe, DecodeOn::worker);
    const DeviceRun of_device = run(recipe, DecodeOn::device);
    EXPECT_EQ(of_device.indices, of_workers.indices);
    EXPECT_TRUE(of_device.images == of_workers.images);
    EXPECT_FALSE(of_workers.images.empty());
    if (packs)
      EXPECT_GT(of_device.packed, records);
    else
      EXPECT_EQ(of_device.packed, 0U);
  }

  /// Writes records of coefficients without a corrupt one.
  void write_coefficients() {
    JpegRecoder recoder(std::make_shared<DecodeBudget>());
    std::vector<Bytes> sound(jpegs_.size());
    for (std::size_t n = 0; n < jpegs_.size(); ++n)
      ASSERT_TRUE(recoder.store(jpegs_[n], sound[n]).is_ok());
    testing::write_pictures(folder_ / "sound.lmdb", sound);
  }

  testing::TemporaryFolder folder_;
  std::vector<Bytes> jpegs_;
  PipelineOptions options_;
};

TEST_F(DeviceCrops, AreTheImagesOfWorkers) {
  expect_same(Recipe::train(96));
  expect_same(Recipe::eval(90));
  Recipe flips{{90, 110},
               {RandomResizedCrop{.interpolation = Interpolation::bicubic},
                RandomHorizontalFlip{.on = FlipOn::device}}};
  expect_same(flips);
  flips.like = Like::pillow_12;
  flips.ops.back() = RandomVerticalFlip{};
  expect_same(flips);
}

TEST_F(DeviceCrops, AreMixedOnTheDevice) {
  Recipe recipe = Recipe::train(96);
  recipe.targets = {};
  recipe.ops.push_back(RandomErasing{.on = EraseOn::device});
  expect_same(recipe);
}

TEST_F(DeviceCrops, TravelInMicroBatches) {
  options_.slots.micro_batches = 3;
  expect_same(Recipe::train(96));
}

TEST_F(DeviceCrops, AreLeftToWorkersWhereTheDeviceCannotMakeThem) {
  Recipe pixels = Recipe::train(96);
  pixels.ops.push_back(RandomGrayscale{});
  expect_same(pixels, false);
  expect_same({{96, 96}, {RandomCrop{.padding = {50}, .pad_if_needed = true}}}, false);
  expect_same(Recipe::train(8), false);  // an image's place is smaller than a packed crop
}

TEST_F(DeviceCrops, ComeFromTheCacheInLaterEpochs) {
  options_.cache_bytes = std::size_t{1} << 26U;
  const DeviceRun of_workers = run(Recipe::train(96), DecodeOn::worker, "jpegs.lmdb");
  const DeviceRun of_device = run(Recipe::train(96), DecodeOn::device, "jpegs.lmdb");
  EXPECT_TRUE(of_device.images == of_workers.images);
  EXPECT_GT(of_device.packed, records / 2);
}

// The first epoch makes the seek indices.
TEST_F(DeviceCrops, ComeFromJpegsWithAnIndex) {
  options_.epochs = 4;
  for (const Recipe& recipe : {Recipe::train(96), Recipe::eval(60)}) {
    const DeviceRun of_workers = run(recipe, DecodeOn::worker, "jpegs.lmdb");
    const DeviceRun of_device = run(recipe, DecodeOn::device, "jpegs.lmdb");
    EXPECT_EQ(of_device.indices, of_workers.indices);
    EXPECT_TRUE(of_device.images == of_workers.images);
    // Baseline JPEGs without restart markers in each row.
    EXPECT_GT(of_device.packed, 4U);
    EXPECT_EQ(of_device.report.decoders.at(jpegs_by_device), of_device.packed);
  }
}

TEST_F(DeviceCrops, AreCountedAndTheirMemoryIsStated) {
  const DeviceRun of_workers = run(Recipe::train(96), DecodeOn::worker);
  const DeviceRun of_device = run(Recipe::train(96), DecodeOn::device);
  const auto& decoders = of_device.report.decoders;
  const auto jpegs = decoders.find(jpegs_by_device);
  EXPECT_EQ(decoders.at(by_device) + (jpegs == decoders.end() ? 0 : jpegs->second),
            of_device.packed);
  EXPECT_GE(of_device.report.memory.staging_bytes,
            of_workers.report.memory.staging_bytes + options_.batch_size * 96 * 96 * 3);
}

// Each packed crop is smaller than an image, so the device makes all that it may make.
TEST_F(DeviceCrops, AreAShareOfTheSamples) {
  write_coefficients();
  Recipe recipe = Recipe::train(96);
  const DeviceRun of_workers = run(recipe, DecodeOn::worker, "sound.lmdb");
  std::map<double, std::vector<bool>> chosen;
  for (const double share : {0.0, 0.25, 0.3, 1.0}) {
    recipe.device_share = share;
    const DeviceRun made = run(recipe, DecodeOn::device, "sound.lmdb");
    EXPECT_EQ(made.indices, of_workers.indices) << share;
    EXPECT_TRUE(made.images == of_workers.images) << share;
    std::uint64_t by_workers = 0;
    for (const auto& [name, count] : made.report.decoders)
      by_workers += name == by_device ? 0 : count;
    EXPECT_EQ(made.packed, made.report.samples - by_workers) << share;
    chosen[share] = made.is_packed;
    // Batches of 7 samples, the last of each epoch of 24 has 3.
    for (std::size_t begin = 0; begin < made.is_packed.size();) {
      const std::size_t size = begin % records == 21 ? 3 : 7;
      double packed = 0;
      for (std::size_t n = begin; n < begin + size; ++n) packed += made.is_packed[n] ? 1 : 0;
      EXPECT_LT(std::abs(packed - share * static_cast<double>(size)), 1) << share << ' ' << begin;
      begin += size;
    }
  }
  for (std::size_t position = 0; position < 2 * records; ++position) {
    EXPECT_FALSE(chosen[0][position]);
    EXPECT_EQ(chosen[0.25][position], position % 4 == 3);
    EXPECT_EQ(chosen[0.3][position],
              position % 10 == 3 || position % 10 == 6 || position % 10 == 9);
    EXPECT_TRUE(chosen[1][position]);
  }
}

TEST_F(DeviceCrops, AreTheSameShareOnEachRank) {
  write_coefficients();
  Recipe recipe = Recipe::train(96);
  recipe.device_share = 0.5;
  options_.batch_size = 4;
  options_.epochs = 1;
  for (unsigned rank = 0; rank < 2; ++rank) {
    options_.ranks.this_process = {.rank = rank, .world = 2};
    const std::vector<bool> packed = run(recipe, DecodeOn::device, "sound.lmdb").is_packed;
    ASSERT_EQ(packed.size(), records / 2);
    for (std::size_t n = 0; n < packed.size(); ++n) EXPECT_EQ(packed[n], n % 2 == 1) << rank;
  }
}

TEST_F(DeviceCrops, NeedAConversionAndNoWorkOnPixels) {
  const auto message_of = [&](const Recipe& recipe) {
    try {
      run(recipe, DecodeOn::device);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  Recipe recipe = Recipe::train(96);
  recipe.views = {View{.field = "local", .output = {32, 32}}};
  EXPECT_THAT(message_of(recipe),
              HasSubstr("\"decode_on\" is \"device\", and \"views\" makes more"));
  recipe = {{20, 20}, {FiveCrop{}}};
  EXPECT_THAT(message_of(recipe), HasSubstr("the operations make 5 images"));
  recipe = Recipe::train(96);
  recipe.resolution = Resolution::reduced;
  EXPECT_THAT(message_of(recipe), HasSubstr("\"resolution\" is not \"exact\""));
  recipe = Recipe::train(96);
  recipe.mix = Mix{.classes = 3};
  EXPECT_THAT(message_of(recipe), HasSubstr("\"mix\" runs on a worker"));
  options_.conversion.reset();
  EXPECT_THAT(message_of(Recipe::train(96)),
              HasSubstr("leaves a stage (crop) of \"image\" to the device, but conversion is not "
                        "set"));
}

TEST_F(DeviceCrops, AreAKeyOfTheRecipe) {
  Recipe recipe = Recipe::train(96);
  EXPECT_THAT(recipe.to_json(), Not(HasSubstr("decode_on")));
  recipe.decode_on = DecodeOn::device;
  EXPECT_THAT(recipe.to_json(), HasSubstr(R"("decode_on":"device")"));
  EXPECT_THAT(recipe.to_json(), Not(HasSubstr("device_share")));
  recipe.device_share = 0.75;
  EXPECT_THAT(recipe.to_json(), HasSubstr(R"("decode_on":"device","device_share":0.75)"));
  EXPECT_EQ(Recipe::from_json(recipe.to_json()), recipe);
  EXPECT_EQ(image_transform(recipe)->fingerprint(),
            image_transform(Recipe::train(96))->fingerprint());
}

TEST_F(DeviceCrops, HaveTheCacheOfWorkersWithAnyShare) {
  Recipe recipe = Recipe::eval(90);
  const CacheablePrefix of_workers = image_transform(recipe)->cacheable_prefix();
  recipe.decode_on = DecodeOn::device;
  recipe.device_share = 0.5;
  EXPECT_EQ(image_transform(recipe)->cacheable_prefix().fingerprint, of_workers.fingerprint);
}

TEST_F(DeviceCrops, AShareOutOfRangeIsRefused) {
  const auto problem_of = [](const auto& check) {
    try {
      check();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  for (const auto& [value, said] : {std::pair{"1.5", "is 1.5, must lie in 0.0..1.0"},
                                    {"-0.25", "is -0.25, must lie in 0.0..1.0"},
                                    {"\"half\"", "is \"half\", must be a number"}})
    EXPECT_EQ(problem_of([value = value] {
                Recipe::from_json(std::string(R"({"device_share": )") + value + "}", "r.json");
              }),
              std::string("r.json: \"device_share\" ") + said);
  Recipe recipe;
  recipe.device_share = NAN;
  EXPECT_EQ(problem_of([&] { image_transform(recipe); }),
            "recipe: \"device_share\" is nan, must lie in 0.0..1.0");
}

}  // namespace
}  // namespace millrace
