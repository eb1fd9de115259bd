// SPDX-License-Identifier: Apache-2.0
//
// The kernels that make crops of stored coefficients must give the pixels that the CPU makes of the
// JPEG, and `CropWork::run_on_host` as well: on a GPU, and compiled for the host, over the
// stand-in.
#include <gmock/gmock.h>

#include <cstring>
#include <string>

#include "gpu/pixel/crop_kernel_run.h"
#include "support/sanitizers.h"
#include "support/shared_data.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::PackedCrops;

class CropKernel : public testing::CropKernelTest {
 protected:
  /// The record of a JPEG; empty if it stays a JPEG.
  Bytes record_of(const Bytes& jpeg) {
    Bytes record;
    if (!recoder_.store(jpeg, record).is_ok()) record.clear();
    return record;
  }

  /// Adds random crops of an image, as RandomResizedCrop and flips choose them.
  void add_crops(PackedCrops& crops, const Bytes& jpeg, int count) {
    const Bytes record = record_of(jpeg);
    CropPacker packer;
    if (record.empty() || !packer.open(record).is_ok()) return;
    for (int n = 0; n < count; ++n)
      crops.add(jpeg, record, random_crop(packer.size(), crops.size()));
  }

  JpegRecoder recoder_{std::make_shared<DecodeBudget>()};
};

TEST_F(CropKernel, GivesTheCpusPixelsOfEveryKindOfJpeg) {
  for (const testing::Encoding& encoding : testing::encodings())
    for (const auto& [width, height] : {std::pair{77, 61}, std::pair{150, 33}, std::pair{9, 120}}) {
      SCOPED_TRACE(encoding.name + " " + std::to_string(width) + " x " + std::to_string(height));
      const Bytes jpeg = testing::encode(testing::noise(width, height, 5), encoding);
      if (record_of(jpeg).empty()) continue;
      PackedCrops crops({23, 19});
      add_crops(crops, jpeg, 4);
      expect_images(crops);
    }
}

TEST_F(CropKernel, GivesTheCpusPixelsOfGreyImages) {
  testing::Encoding grey{.name = "grey", .h = {1, 1, 1, 1}, .v = {1, 1, 1, 1}};
  PackedCrops crops({40, 30});
  add_crops(crops, testing::encode(testing::noise(131, 90, 6, 1), grey), 6);
  expect_images(crops);
}

TEST_F(CropKernel, GivesTheCpusPixelsOfPhotographs) {
  MILLRACE_NEEDS_SHARED("data/photos");
  const auto files = testing::jpeg_files(testing::shared_dir() / "data" / "photos");
  std::size_t made = 0;
  for (std::size_t n = 0; n < files.size(); n += 25 * testing::one_in) {
    SCOPED_TRACE(files[n].string());
    PackedCrops crops({224, 224});
    add_crops(crops, testing::read_file(files[n]), 2);
    if (crops.packed.empty()) continue;
    expect_images(crops);
    made += crops.packed.size();
  }
  EXPECT_GT(made, files.size() / 25 / testing::one_in);
}

TEST_F(CropKernel, CopiesImagesThatCameAsPixels) {
  const Bytes jpeg = testing::encode(testing::noise(77, 61, 5), testing::encodings().front());
  PackedCrops crops({23, 19});
  add_crops(crops, jpeg, 3);
  ASSERT_EQ(crops.packed.size(), 3U);
  crops.packed[1] = 0;
  std::memcpy(crops.images.data() + crops.image_bytes(), crops.input(1), crops.image_bytes());
  expect_images(crops);
}

TEST_F(CropKernel, MarksSamplesWithoutInputOrScratch) {
  const Bytes jpeg = testing::encode(testing::noise(77, 61, 5), testing::encodings().front());
  PackedCrops crops({23, 19});
  add_crops(crops, jpeg, 4);
  ASSERT_EQ(crops.packed.size(), 4U);
  crops.offsets[1] = CropWork::no_input;
  crops.keep_scratch_of(3);  // the last one's begins earlier now, but it does not fit
  const std::vector<std::uint8_t> marked{0, 1, 0, 1};
  for (const bool on_device : {true, false}) {
    std::vector<std::uint8_t> made(crops.images.size(), untouched);
    std::vector<std::uint8_t> marks(4, 0);
    if (on_device)
      ASSERT_EQ(run_on_device(crops, made, marks), cudaSuccess);
    else
      run_here(crops, made, marks);
    EXPECT_EQ(marks, marked);
    for (const std::size_t sample : {0U, 2U})
      EXPECT_TRUE(std::equal(
          made.begin() + static_cast<std::ptrdiff_t>(sample * crops.image_bytes()),
          made.begin() + static_cast<std::ptrdiff_t>((sample + 1) * crops.image_bytes()),
          crops.images.begin() + static_cast<std::ptrdiff_t>(sample * crops.image_bytes())))
          << sample;
  }
}

// Whatever a tile's bytes are, the kernel and the plain decoder agree whether they are a tile, and
// on the image.
TEST_F(CropKernel, AgreesWithTheHostOnDamagedTiles) {
  const Bytes jpeg = testing::encode(testing::noise(77, 61, 5), testing::encodings().front());
  std::size_t corrupt_ones = 0;
  std::size_t sound_ones = 0;
  for (int round = 0; round < 200 / testing::one_in; ++round) {
    PackedCrops crops({23, 19});
    add_crops(crops, jpeg, 4);
    for (std::size_t n = 0; n < crops.packed.size(); ++n) {
      std::byte* const begin = crops.input(n);
      const auto& crop = *reinterpret_cast<const CropHeader*>(begin);
      // The tables between the tiles are trusted.
      const CropHeader::Plane& plane = crop.planes[random_.below(3)];
      std::uint32_t rows_at = 0;
      std::memcpy(&rows_at, begin + plane.rows_at, sizeof rows_at);
      std::uint32_t bytes = 0;
      std::memcpy(&bytes, begin + rows_at, sizeof bytes);
      std::byte* const tile = begin + rows_at + 4 * static_cast<std::size_t>(plane.tiles);
      for (std::uint64_t change = random_.below(3); change < 3; ++change)
        tile[random_.below(bytes)] = static_cast<std::byte>(random_.below(256));
    }
    std::vector<std::uint8_t> made(crops.images.size(), untouched);
    std::vector<std::uint8_t> here = made;
    std::vector<std::uint8_t> corrupt(crops.packed.size(), 0);
    std::vector<std::uint8_t> corrupt_here = corrupt;
    ASSERT_EQ(run_on_device(crops, made, corrupt), cudaSuccess);
    run_here(crops, here, corrupt_here);
    ASSERT_EQ(corrupt, corrupt_here) << "round " << round;
    ASSERT_TRUE(made == here) << "round " << round;
    for (const std::uint8_t mark : corrupt) ++(mark != 0 ? corrupt_ones : sound_ones);
  }
  EXPECT_GT(corrupt_ones, 0U);
  EXPECT_GT(sound_ones, 0U);
}

}  // namespace
}  // namespace millrace
