// SPDX-License-Identifier: Apache-2.0
//
// Crops of images that an EXIF orientation turns or mirrors must be those of the CPU. The kernels
// make them on a GPU, and compiled for the host, over the stand-in; `CropWork::run_on_host` makes
// them, too.
#include <gmock/gmock.h>

#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "gpu/pixel/crop_kernel_run.h"
#include "support/sanitizers.h"
#include "support/shared_data.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::Encoding;
using testing::PackedCrops;

constexpr int orientations = 8;

class TurnedCrops : public testing::CropKernelTest {
 protected:
  /// Adds a random crop of the image's coefficients, and one of the JPEG itself.
  void add_crops(PackedCrops& crops, const Bytes& jpeg, Size stored, int orientation) {
    Bytes record;
    ASSERT_TRUE(recoder_.store(jpeg, record).is_ok());
    const Turn turn = turn_of(orientation);
    const auto next = [&] {
      Resampling resampling = random_crop(turned(stored, turn), crops.size());
      resampling.turn = turn;
      return resampling;
    };
    EXPECT_TRUE(crops.add(jpeg, record, next()));
    EXPECT_TRUE(crops.add_jpeg(jpeg, testing::index_of(jpeg), std::nullopt, next()));
    for (std::size_t sample = crops.packed.size() - 2; sample < crops.packed.size(); ++sample) {
      const CropHeader& crop = crops.header(sample);
      EXPECT_EQ(crop.exchanged != 0, orientation >= 5);
      orders_.emplace(crop.exchanged != 0, crop.vertical_first != 0);
    }
  }

  JpegRecoder recoder_{std::make_shared<DecodeBudget>()};
  /// Whether rows and columns were exchanged, and whether columns were resized first.
  std::set<std::pair<bool, bool>> orders_;
};

TEST_F(TurnedCrops, GiveTheCpusPixelsOfEverySubsampling) {
  for (const bool grey : {false, true})
    for (const auto& [across, down] : {std::pair{1, 1}, {2, 1}, {2, 2}, {1, 2}})
      for (const auto& [width, height, to] : {std::tuple{77, 61, Size{23, 19}},
                                              {33, 150, {20, 28}},
                                              {150, 33, {28, 20}},
                                              {5, 3, {9, 7}}}) {
        if (grey && across * down > 1) continue;
        if (testing::one_in > 1 && across * down == 2) continue;  // sanitizers are slow
        SCOPED_TRACE(std::to_string(across) + " x " + std::to_string(down) + ", " +
                     std::to_string(width) + " x " + std::to_string(height));
        const Encoding encoding{.h = {across, 1, 1, 1}, .v = {down, 1, 1, 1}};
        const Bytes jpeg =
            testing::encode(testing::noise(width, height, 5, grey ? 1 : 3), encoding);
        PackedCrops crops(to);
        for (int orientation = 1; orientation <= orientations; ++orientation)
          add_crops(crops, jpeg, {width, height}, orientation);
        expect_images(crops);
      }
  EXPECT_EQ(orders_.size(), 4U);
}

TEST_F(TurnedCrops, GiveTheCpusPixelsOfPhotographs) {
  MILLRACE_NEEDS_SHARED("data/exif");
  for (const int orientation : {2, 3, 4, 5, 6, 7, 8}) {
    const std::string name = "Landscape_" + std::to_string(orientation) + ".jpg";
    SCOPED_TRACE(name);
    const Bytes jpeg = testing::read_file(testing::shared_dir() / "data" / "exif" / name);
    ImageInfo info;
    ASSERT_TRUE(read_image_info(jpeg, info).is_ok());
    ASSERT_EQ(info.orientation, orientation);
    Bytes record;
    ASSERT_TRUE(recoder_.store(jpeg, record).is_ok());
    Resampling part{.from = {301, 199}, .to = {224, 224}, .window = {0, 0, 224, 224}};
    part.turn = turn_of(orientation);
    part = shifted(part, turned(info.size(), part.turn), 803, 517);
    PackedCrops crops(part.to);
    EXPECT_TRUE(crops.add(jpeg, record, part));
    EXPECT_TRUE(crops.add_jpeg(jpeg, testing::index_of(jpeg), std::nullopt, part));
    expect_images(crops);
  }
}

}  // namespace
}  // namespace millrace
