// SPDX-License-Identifier: Apache-2.0
//
// Crops that the kernels make of JPEGs and their seek indices must be those that the CPU makes, and
// `CropWork::run_on_host` as well: on a GPU, and compiled for the host, over the stand-in.
#include <gmock/gmock.h>

#include <cstring>
#include <string>

#include "gpu/pixel/crop_kernel_run.h"
#include "support/sanitizers.h"
#include "support/shared_data.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::Encoding;
using testing::index_of;
using testing::PackedCrops;

class ScanKernel : public testing::CropKernelTest {
 protected:
  /// Returns the name of the decoder, and the image's size.
  static std::pair<std::string, Size> facts_of(const Bytes& jpeg) {
    const auto decoder = make_image_decoder();
    EXPECT_TRUE(decoder->open(jpeg).is_ok());
    return {decoder->header().decoder, decoder->header().size()};
  }

  /// Adds random crops of an image. Returns whether all can be packed.
  bool add_crops(PackedCrops& crops, const Bytes& jpeg, const Bytes& index, int count) {
    const Size size = facts_of(jpeg).second;
    bool all = true;
    for (int n = 0; n < count; ++n)
      all = crops.add_jpeg(jpeg, index, std::nullopt, random_crop(size, crops.size())) && all;
    return all;
  }

  /// The upper left corner of an image.
  static Resampling corner_of(Size image, Size corner, Size to) {
    Resampling resampling;
    resampling.from = corner;
    resampling.to = to;
    resampling.window = {0, 0, to.width, to.height};
    return shifted(resampling, image, 0, 0);
  }

  void expect_crops(const Bytes& jpeg, IndexPoints points = IndexPoints::tiles) {
    PackedCrops crops({23, 19});
    ASSERT_TRUE(add_crops(crops, jpeg, index_of(jpeg, points), 4));
    expect_images(crops);
  }
};

TEST_F(ScanKernel, GivesTheCpusPixelsOfEveryBaselineJpeg) {
  int packed = 0;
  for (const Encoding& encoding : testing::encodings())
    for (const auto& [width, height] : {std::pair{77, 61}, std::pair{150, 33}, std::pair{9, 120},
                                        std::pair{301, 40}, std::pair{5, 5}}) {
      SCOPED_TRACE(encoding.name + " " + std::to_string(width) + " x " + std::to_string(height));
      if (testing::one_in > 1 && width > 100) continue;  // sanitizers are slow
      const Bytes jpeg = testing::encode(testing::noise(width, height, 5), encoding);
      if (facts_of(jpeg).first == "millrace") {
        for (const IndexPoints points : {IndexPoints::tiles, IndexPoints::rows})
          expect_crops(jpeg, points);
        ++packed;
        continue;
      }
      PackedCrops crops({23, 19});
      EXPECT_FALSE(add_crops(crops, jpeg, index_of(jpeg), 1));
    }
  EXPECT_GE(packed, 4 * 2 * (testing::one_in > 1 ? 3 : 5));
}

TEST_F(ScanKernel, TakesRestartMarkersAnywhere) {
  for (const int interval : {1, 3, 5, 8, 10, 11, 20, 25, 1000})
    for (const bool grey : {false, true}) {
      SCOPED_TRACE(interval);
      const Encoding encoding{
          .h = {grey ? 1 : 2, 1, 1, 1}, .v = {grey ? 1 : 2, 1, 1, 1}, .restart_mcus = interval};
      expect_crops(testing::encode(testing::noise(160, 90, 8, grey ? 1 : 3), encoding));
    }
}

TEST_F(ScanKernel, TakesCodesOfEveryLength) {
  for (const int quality : {5, 50, 100})
    for (const bool optimised : {false, true}) {
      SCOPED_TRACE(quality);
      expect_crops(testing::encode(testing::noise(190, 70, 9),
                                   {.quality = quality, .optimised = optimised}));
    }
}

TEST_F(ScanKernel, GivesTheCpusPixelsOfPhotographs) {
  MILLRACE_NEEDS_SHARED("data/photos");
  const auto files = testing::jpeg_files(testing::shared_dir() / "data" / "photos");
  std::size_t made = 0;
  for (std::size_t n = 7; n < files.size(); n += 25 * testing::one_in) {
    SCOPED_TRACE(files[n].string());
    const Bytes jpeg = testing::read_file(files[n]);
    if (facts_of(jpeg).first != "millrace") continue;
    PackedCrops crops({224, 224});
    ASSERT_TRUE(add_crops(crops, jpeg, index_of(jpeg), 2));
    expect_images(crops);
    made += crops.packed.size();
  }
  EXPECT_GT(made, files.size() / 25 / testing::one_in);
}

// Crops of coefficients, of JPEGs, and images in one batch.
TEST_F(ScanKernel, TakesCropsOfBothKinds) {
  const Bytes jpeg = testing::encode(testing::noise(77, 61, 5), {});
  Bytes record;
  ASSERT_TRUE(JpegRecoder(std::make_shared<DecodeBudget>()).store(jpeg, record).is_ok());
  PackedCrops crops({23, 19});
  for (int n = 0; n < 2; ++n) {
    ASSERT_TRUE(add_crops(crops, jpeg, index_of(jpeg), 2));
    ASSERT_TRUE(crops.add(jpeg, record, random_crop({77, 61}, crops.size())));
  }
  crops.packed[1] = 0;
  std::memcpy(crops.images.data() + crops.image_bytes(), crops.input(1), crops.image_bytes());
  expect_images(crops);
}

TEST_F(ScanKernel, PutsTheSegmentsOfTheMostBitsFirst) {
  const Bytes jpeg = testing::encode(testing::noise(500, 300, 5), {});
  PackedCrops crops({23, 19});
  ASSERT_TRUE(add_crops(crops, jpeg, index_of(jpeg), 3));
  for (std::size_t sample = 0; sample < 3; ++sample) {
    const CropHeader& crop = crops.header(sample);
    const auto* const segments = part_of<CropScan::Segment>(crop, crop.scan.segments_at);
    for (std::int32_t n = 1; n < crop.scan.segment_count; ++n)
      ASSERT_LE(segments[n].end_bit - segments[n].begin_bit,
                segments[n - 1].end_bit - segments[n - 1].begin_bit);
  }
}

TEST_F(ScanKernel, LeavesWhatTheFormCannotHold) {
  const Bytes jpeg = testing::encode(testing::noise(77, 61, 5), {});
  const Resampling crop = corner_of({77, 61}, {70, 60}, {23, 19});
  PackedCrops crops({23, 19});
  EXPECT_FALSE(crops.add_jpeg(jpeg, {}, std::nullopt, crop)) << "without an index";
  const Bytes foreign = index_of(testing::encode(testing::noise(77, 61, 6), {}));
  EXPECT_FALSE(crops.add_jpeg(jpeg, foreign, std::nullopt, crop)) << "a foreign index";

  // An index that reaches as far as an upper region.
  const auto decoder = make_image_decoder();
  ASSERT_TRUE(decoder->open(jpeg).is_ok());
  decoder->use_index({});
  PixelView view;
  ASSERT_TRUE(decoder->decode({0, 0, 77, 20}, view).is_ok());
  const auto known = decoder->extended_index();
  const Bytes part(known.begin(), known.end());
  EXPECT_FALSE(crops.add_jpeg(jpeg, part, std::nullopt, crop)) << "an index of the upper part";
  // A crop of that region needs the last tile of the index, whose end is unknown.
  const Resampling upper = corner_of({77, 61}, {77, 20}, {23, 19});
  EXPECT_TRUE(crops.add_jpeg(jpeg, part, std::nullopt, upper));
  EXPECT_TRUE(crops.add_jpeg(jpeg, part, std::nullopt, corner_of({77, 61}, {30, 10}, {23, 19})));
  expect_images(crops);
}

}  // namespace
}  // namespace millrace
