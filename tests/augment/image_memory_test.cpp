// SPDX-License-Identifier: Apache-2.0
//
// In steady state, making training samples of photographs allocates no memory of an image's size.
#include <millrace/host_device.h>
#include <millrace/image_decoder.h>
#include <millrace/image_transform.h>
#include <millrace/pipeline.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "augment/orientations.h"
#include "support/counting_malloc.h"
#include "support/pictures.h"

namespace millrace {
namespace {

/// Pictures of several sizes and colour layouts, of one scan each: libjpeg holds a progressive
/// image as a whole.
std::vector<testing::Bytes> photographs() {
  std::vector<testing::Bytes> images;
  for (const int width : {300, 400, 500})
    for (const std::array<int, 4>& horizontal : {std::array{1, 1, 1, 1}, std::array{2, 1, 1, 1}}) {
      testing::Encoding encoding;
      encoding.h = encoding.v = horizontal;
      images.push_back(
          testing::encode(testing::noise(width, 375, static_cast<unsigned>(width)), encoding));
    }
  return images;
}

void expect_no_large_allocation(const Recipe& recipe) {
  const testing::TemporaryFolder folder;
  testing::write_pictures(folder / "pictures.lmdb", photographs());
  Pipeline pipeline(open_dataset(folder / "pictures.lmdb"), image_transform(recipe),
                    std::make_shared<HostDevice>(HostDeviceOptions{.copies = true}),
                    {.batch_size = 6, .seed = 3, .runtime = make_runtime({.workers = 2})});
  HostStream stream;
  for (int batch = 0; batch < 40; ++batch) (void)pipeline.next(stream);
  const std::uint64_t before = testing::large_allocations();
  for (int batch = 0; batch < 40; ++batch) (void)pipeline.next(stream);
  EXPECT_EQ(testing::large_allocations() - before, 0U);
}

TEST(ImageMemory, TrainingSamplesTakeNoPicturesMemory) {
  MILLRACE_NEEDS_COUNTING_MALLOC();
  Recipe recipe = Recipe::train(224);
  // Crops of nearly the whole image: scratch grows with the largest crop so far, so it soon has its
  // final size.
  recipe.ops.front() = RandomResizedCrop{.scale = {0.9, 1.0}, .ratio = {0.8, 1.333}};
  expect_no_large_allocation(recipe);
}

TEST(ImageMemory, EvaluationSamplesTakeNoPicturesMemory) {
  MILLRACE_NEEDS_COUNTING_MALLOC();
  expect_no_large_allocation(Recipe::eval(224));
}

/// Makes a sample of `image` and expects that the worker then holds at least `windows` times the
/// sample's bytes, and at most its share of the stated limit.
void expect_stated_memory(const Transform& transform, const testing::Bytes& image,
                          std::int64_t windows) {
  const std::array fields{RecordField{"image", image}};
  std::vector<std::uint8_t> pixels(transform.spec().fields()[0].shape.elements());
  const std::vector places{Tensor{pixels.data(), DType::uint8, transform.spec().fields()[0].shape}};
  std::array<std::uint64_t, 2> stage_ns{};
  Sample sample(transform.spec(), places, stage_ns);
  Random random(1, 1);
  const std::int64_t before = testing::held_bytes();
  const auto worker = transform.make_worker();
  ASSERT_TRUE(worker->make(Record(0, fields), random, sample).is_ok());
  const std::int64_t held = testing::held_bytes() - before;
  EXPECT_GE(held, windows * static_cast<std::int64_t>(pixels.size()));
  EXPECT_LE(held, static_cast<std::int64_t>(transform.scratch_limit(1)));
}

// The window of a turned image is as large as the output, and is memory beside the slots.
TEST(ImageMemory, OfTurnedImagesIsStated) {
  MILLRACE_NEEDS_COUNTING_MALLOC();
  constexpr Size output{5000, 4000};
  const DecodeLimits limits{.max_decode_bytes = 1};
  const auto transform = image_transform(
      {.output = output, .ops = {ExifTranspose{}, RandomResizedCrop{}}, .targets = {}}, limits);
  expect_stated_memory(
      *transform, testing::with_orientation(testing::encode(testing::noise(64, 48, 5), {}), 6), 1);
  const auto upright = image_transform({output, {RandomResizedCrop{}}}, limits);
  EXPECT_EQ(upright->scratch_limit(1), 1 + 2 * DecodeBudget::small_bytes);
}

// A border that repeats pixels needs a window that does not lie in the output.
TEST(ImageMemory, OfMirroredBordersIsStated) {
  MILLRACE_NEEDS_COUNTING_MALLOC();
  constexpr Size output{6000, 4500};
  const auto with = [&](PaddingMode mode) {
    // The output shows nothing but the border at the left.
    return image_transform(
        {.output = output,
         .ops = {Resize{output.height},
                 Pad{.padding = {2 * output.width, 0, 0, 0}, .padding_mode = mode}, CenterCrop{}},
         .targets = {}},
        {.max_decode_bytes = 1});
  };
  const testing::Bytes image = testing::encode(testing::noise(64, 48, 5), {});
  expect_stated_memory(*with(PaddingMode::reflect), image, 1);
  EXPECT_EQ(with(PaddingMode::constant)->scratch_limit(1), 1 + 2 * DecodeBudget::small_bytes);
}

// Each kind of image has a decoder with scratch of its own.
TEST(ImageMemory, OfLargeImagesOfAnotherKindIsFreed) {
  MILLRACE_NEEDS_COUNTING_MALLOC();
  const testing::Bytes image = testing::encode(testing::noise(2600, 1700, 5), {});
  testing::Bytes other(14);
  std::memcpy(other.data(), "P6\n1 1\n255\nabc", other.size());
  const auto decoder = make_image_decoder();
  const std::int64_t before = testing::held_bytes();
  PixelView view;
  ASSERT_TRUE(decoder->open(image).is_ok());
  ASSERT_TRUE(decoder->decode({0, 0, 2600, 1700}, view).is_ok());
  EXPECT_GT(testing::held_bytes() - before, 4 << 20);
  ASSERT_TRUE(decoder->open(other).is_ok());
  ASSERT_TRUE(decoder->decode({0, 0, 1, 1}, view).is_ok());
  EXPECT_LT(testing::held_bytes() - before, 1 << 20);
}

// A flat image has many points, and few bytes for each.
TEST(ImageMemory, OfALargeIndexIsNotKept) {
  MILLRACE_NEEDS_COUNTING_MALLOC();
  constexpr int side = 8192;
  const testing::Image flat{side, side, 1, std::vector<std::uint8_t>(std::size_t{side} * side, 90)};
  const testing::Bytes image = testing::encode(flat, {.h = {1, 1, 1, 1}, .v = {1, 1, 1, 1}});
  ASSERT_LT(image.size(), std::size_t{8} << 20);
  const auto decoder = make_image_decoder();
  const std::int64_t before = testing::held_bytes();
  PixelView view;
  ASSERT_TRUE(decoder->open(image).is_ok());
  decoder->use_index({}, 1);
  ASSERT_TRUE(decoder->decode({side - 8, side - 8, 8, 8}, view).is_ok());
  ASSERT_GT(decoder->extended_index().size(), 100'000U);
  decoder->close();
  EXPECT_LT(testing::held_bytes() - before, 2 << 20);
}

// Lack of memory does not make an image bad.
TEST(ImageMemory, TooLittleMemoryIsAnErrorAndNoBadImage) {
  MILLRACE_NEEDS_COUNTING_MALLOC();
  testing::Encoding encoding;
  encoding.scans = testing::Encoding::Scans::progressive;
  const testing::Bytes image = testing::encode(testing::noise(300, 200, 5), encoding);
  const auto decoder = make_image_decoder();
  ASSERT_TRUE(decoder->open(image).is_ok());  // allocates the memory that it keeps
  for (int round = 0; round < 2; ++round) {
    const auto check_without_memory = [&] {
      const testing::NoMemory little(testing::picture_bytes);
      (void)decoder->check();
    };
    EXPECT_THROW(check_without_memory(), std::bad_alloc);
    ASSERT_TRUE(decoder->open(image).is_ok());
    EXPECT_TRUE(decoder->check().is_ok());
    ASSERT_TRUE(decoder->open(image).is_ok());
  }
}

}  // namespace
}  // namespace millrace
